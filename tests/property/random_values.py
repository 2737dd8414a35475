"""Types and values for random tables: few values of each type, so that rows meet and repeat, and NULL more often than any.

A *kind* is a type together with what a query may do with it: `bigint` values are small enough that no query of the grammar can
overflow, `wide` ones sit at the ends of the type and are only compared, never added. Doubles are multiples of 1/8, so that
their sums are exact in any order of the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Kind:
    """A type in SQL, values of it, and how far from zero they are."""

    ddl: str
    values: tuple[Any, ...]
    bound: int = 0


KINDS: dict[str, Kind] = {
    "int": Kind("INT", (0, 1, 2, 3, -1, 7), 10),
    "string": Kind("STRING", ("", "a", "b", "B", "ab", "a,b", "é", "日本", "%", " a ", "it's"), 0),
    "bigint": Kind("BIGINT", (0, 1, 2, -3, 1000), 1000),
    "double": Kind("DOUBLE", (0.0, -0.0, 1.0, 0.5, -2.25, 3.0, math.nan, math.inf, -math.inf), 10),
    "decimal": Kind("DECIMAL(10,2)", tuple(map(Decimal, ("0.00", "1.00", "1.50", "-2.25", "99.99"))), 100),
    "boolean": Kind("BOOLEAN", (True, False)),
    "date": Kind("DATE", tuple(map(date.fromisoformat, ("2024-02-29", "2024-03-01", "1969-12-31", "2023-12-31")))),
    "timestamp": Kind(
        "TIMESTAMP",
        (
            datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=UTC),
            datetime(2024, 3, 1, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 0, tzinfo=UTC),
        ),
    ),
    "timestamp_ntz": Kind("TIMESTAMP_NTZ", (datetime(2024, 3, 31, 2, 30), datetime(2024, 3, 1), datetime(1969, 12, 31, 23, 0))),
    "wide": Kind("BIGINT", (0, 1, 2**63 - 1, -(2**63), 2**53 + 1)),
    "tinyint": Kind("TINYINT", (0, 1, 127, -128)),
    "float": Kind("FLOAT", (0.0, -0.0, 0.5, -1.25, math.nan, math.inf)),
    "binary": Kind("BINARY", (b"", b"a", b"\x00", b"\xff")),
    "array": Kind("ARRAY<INT>", ([], [1], [1, None], [2, 1], [1, 1, 3])),
    "struct": Kind("STRUCT<x: INT, y: STRING>", ({"x": 1, "y": "a"}, {"x": None, "y": "b"}, {"x": 2, "y": None})),
    "map": Kind("MAP<STRING, INT>", ([], [("a", 1)], [("a", None), ("b", 2)])),
}
NUMBERS = ("int", "bigint", "double", "decimal")
ORDERED = tuple(kind for kind in KINDS if kind != "map")
FLAT = tuple(kind for kind in KINDS if kind not in ("array", "struct", "map"))


def values_of(kind: str) -> st.SearchStrategy[Any]:
    """A value for a column; about one in four is NULL."""
    values = KINDS[kind].values
    return st.sampled_from([*values, *[None] * (1 + len(values) // 3)])


def literal(kind: str, value: Any) -> str:
    """The value as Spark's SQL writes it."""
    if value is None:
        return f"CAST(NULL AS {KINDS[kind].ddl})"
    write = _WRITTEN.get(kind, lambda given: f"CAST('{given}' AS {KINDS[kind].ddl})")
    return write(value)


def _string(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _array(values: list[Any]) -> str:
    return f"CAST(array({', '.join('NULL' if part is None else str(part) for part in values)}) AS ARRAY<INT>)"


def _struct(value: dict[str, Any]) -> str:
    return f"named_struct('x', {literal('int', value['x'])}, 'y', {literal('string', value['y'])})"


def _map(entries: list[tuple[Any, Any]]) -> str:
    pairs = ", ".join(f"{literal('string', key)}, {literal('int', item)}" for key, item in entries)
    return f"CAST(map({pairs}) AS MAP<STRING, INT>)"


_WRITTEN: dict[str, Callable[[Any], str]] = {
    "int": lambda value: f"({value})" if value < 0 else str(value),
    "string": _string,
    "boolean": lambda value: str(value).upper(),
    "date": lambda value: f"DATE'{value}'",
    "timestamp": lambda value: f"TIMESTAMP'{value.isoformat(' ')}'",
    "timestamp_ntz": lambda value: f"TIMESTAMP_NTZ'{value.isoformat(' ')}'",
    "binary": lambda value: f"X'{value.hex()}'",
    "array": _array,
    "struct": _struct,
    "map": _map,
}
