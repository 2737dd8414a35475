"""What a translation rule is, and the few words of SQL that all families share.

A rule gets the call and its translated arguments and gives SQL for it. The SQL may raise — Spark then evaluates the same rows —
but its value never differs from Spark's; where neither can be had, the rule says that the call is untranslatable.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from headwater.algebra.expressions import Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.algebra.expressions import Call


class Untranslatable(Exception):
    """No verified DuckDB SQL exists for an expression."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Typed:
    """SQL text and the type of its value."""

    sql: str
    type: pa.DataType


Rule: TypeAlias = "Callable[[Call, tuple[Typed, ...]], Typed]"
RULES: dict[str, Rule] = {}

# Definitions that a connection needs, and which parameters a macro evaluates more than once.
MACROS: dict[str, str] = {}
_REPEATED: dict[str, tuple[int, ...]] = {}
# What costs nothing to evaluate again.
_SIMPLE = re.compile(
    r"c\d+|-?[\d.]+(?:e\d+)?|'(?:[^']|'')*'|DATE '[^']*'|CAST\((?:c\d+|-?\d+|NULL|'(?:[^']|'')*') AS [A-Z0-9(), ]+\)", re.DOTALL
)

INSTANT = pa.timestamp("us", tz="UTC")
LOCAL = pa.timestamp("us")
# A difference of times has no DuckDB type that Arrow would take back, so inside an expression it is a BIGINT of microseconds.
DURATION = pa.duration("us")

_NAMES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.date32(): "DATE",
    INSTANT: "TIMESTAMPTZ",
    LOCAL: "TIMESTAMP",
    DURATION: "BIGINT",
}


def translates(*functions: str) -> Callable[[Rule], Rule]:
    """Registers a rule for Catalyst classes."""

    def register(rule: Rule) -> Rule:
        for function in functions:
            RULES[function] = rule
        return rule

    return register


def macro(signature: str, body: str) -> None:
    """Defines a macro that rules may call."""
    name, _, parameters = signature.removesuffix(")").partition("(")
    nests = re.search(r"\bhw_(?!raise\b)", body) is not None
    uses = [len(re.findall(rf"\b{parameter}\b", body)) for parameter in parameters.split(", ")]
    _REPEATED[name] = tuple(i for i, count in enumerate(uses) if count > 1 or nests)
    MACROS[name] = f"CREATE TEMP MACRO {signature} AS {body}"


def run(name: str, *arguments: str) -> str:
    """A call of a macro. What it names more than once is evaluated once, or nested calls would multiply.

    So a column becomes `hw_finite(c0)`, but more than that `list_transform([c0 + 1], lambda hw_x: hw_finite(hw_x))[1]`.
    """
    bound = [i for i, argument in enumerate(arguments) if not _SIMPLE.fullmatch(argument)]
    if not any(i in _REPEATED[name] for i in bound):
        return f"{name}({', '.join(arguments)})"
    if len(bound) == 1:
        given, names = arguments[bound[0]], {bound[0]: "hw_x"}
    else:
        given = f"struct_pack({', '.join(f'x{i} := {arguments[i]}' for i in bound)})"
        names = {i: f"hw_x.x{i}" for i in bound}
    used = ", ".join(names.get(i, argument) for i, argument in enumerate(arguments))
    return f"list_transform([{given}], lambda hw_x: {name}({used}))[1]"


# `error` is volatile, which keeps DuckDB from evaluating what it is part of only once; a cast that fails is not.
macro("hw_raise(reason)", 'CAST(CAST(reason AS INTEGER) AS "NULL")')


def sql_type(kind: pa.DataType) -> str:
    """DuckDB's name of a type."""
    if kind in _NAMES:
        return _NAMES[kind]
    if pa.types.is_decimal128(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"{sql_type(kind.value_type)}[]"
    if pa.types.is_map(kind):
        return f"MAP({sql_type(kind.key_type)}, {sql_type(kind.item_type)})"
    if pa.types.is_struct(kind) and kind.num_fields:
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return f"STRUCT({', '.join(f'{quoted(f.name)} {sql_type(f.type)}' for f in fields)})"
    raise Untranslatable(f"type {kind}")


def quoted(name: str) -> str:
    """An identifier, whatever is in it."""
    if "\x00" in name:
        raise Untranslatable("a name with a NUL character")
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A string constant, whatever is in it."""
    if "\x00" in value:
        raise Untranslatable("a constant with a NUL character")
    return "'" + value.replace("'", "''") + "'"


def cast(sql: str, kind: pa.DataType) -> str:
    return f"CAST({sql} AS {sql_type(kind)})"


def same_types(arguments: tuple[Typed, ...], function: str) -> pa.DataType:
    """The type that all arguments share; Catalyst's casts see to that, but for what Arrow cannot tell apart."""
    kind = arguments[0].type
    # By name: whether a field of a struct can be NULL is part of an Arrow type, but of no value.
    if any(
        sql_type(argument.type) != sql_type(kind) or (argument.type == DURATION) != (kind == DURATION) for argument in arguments
    ):
        raise Untranslatable(f"{function} of different types")
    return kind


def constant(call: Call, ordinal: int) -> str:
    """The value of an argument that must be a constant other than NULL."""
    argument = call.arguments[ordinal]
    if not isinstance(argument, Literal) or argument.value is None:
        raise Untranslatable(f"{call.function} without a constant")
    return argument.value


def option(call: Call, name: str) -> str | None:
    """A text option of the call."""
    described = call.option(name)
    if described is None:
        return None
    value = json.loads(described)
    return value if isinstance(value, str) else None


def require(condition: bool, reason: str) -> None:  # noqa: FBT001  (reads as a sentence)
    if not condition:
        raise Untranslatable(reason)


def is_whole(kind: pa.DataType) -> bool:
    return pa.types.is_signed_integer(kind)


def is_plain(kind: pa.DataType) -> bool:
    """Neither nested nor without a DuckDB name: a type whose values compare alike in both engines."""
    return kind in _NAMES or pa.types.is_decimal128(kind)
