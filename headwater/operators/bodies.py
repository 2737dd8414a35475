"""Bodies as programs: what a row that is believed derives, as a few instructions for a compiled loop (`rounds`).

    rule     a row of one relation  →  rows of another: conditions, arithmetic, and lookups in inputs, which stay as they are
    body     linear in the relations: no rule meets rows of two of them, so after the first pass rules alone go on

Values are whole numbers, dates and times, a word each, in *registers*: those of the row, then its rank, then what is found and
computed. What has no such program — strings, nested values, a relation that meets itself, other functions — is left to the
operators of the body themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Expression, Literal
from headwater.operators.arrange import Arrange
from headwater.operators.linear import Linear, Union
from headwater.operators.multijoin import MultiJoin
from headwater.state.layout import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from headwater.operators.fixpoint import Fixpoint, Line
    from headwater.operators.multijoin import Lookup, Path

# An instruction: what it does, two registers that it reads, one that it writes, a number.
NOT_NULL, SAME, COMPARE, LITERAL, ADD, SUBTRACT, LOOKUP = range(7)
LESS, LESS_OR_EQUAL, EQUAL = range(3)
# One bit of a word for each register says whether it is NULL.
_REGISTERS = 60

_COMPARISONS = {
    "LessThan": (LESS, False),
    "LessThanOrEqual": (LESS_OR_EQUAL, False),
    "GreaterThan": (LESS, True),
    "GreaterThanOrEqual": (LESS_OR_EQUAL, True),
    "EqualTo": (EQUAL, False),
}
_ARITHMETIC = {"Add": ADD, "Subtract": SUBTRACT}


class NoProgram(Exception):
    """Something in a body is not for compiled rounds."""


@dataclass(frozen=True)
class Meeting:
    """A lookup in an input of the fixpoint: by the registers `probe`, in the order of its key; columns found to registers."""

    input: int
    probe: tuple[int, ...]
    found: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Rule:
    """What rows of relation `source` derive of relation `target`: the registers `columns`, with the rank in `rank`."""

    source: int
    target: int
    code: tuple[tuple[int, int, int, int, int], ...]
    meetings: tuple[Meeting, ...]
    columns: tuple[int, ...]
    rank: int
    registers: int


@dataclass(frozen=True)
class _Flow:
    """Rows on their way: the registers of their columns; their relation, and what was done to them so far."""

    source: int
    places: tuple[int, ...]
    registers: int
    code: tuple[tuple[int, int, int, int, int], ...] = ()
    meetings: tuple[Meeting, ...] = ()

    def then(self, operation: int, a: int = 0, b: int = 0, *, number: int = 0) -> _Flow:
        return replace(self, code=(*self.code, (operation, a, b, 0, number)))

    def made(self, operation: int, a: int = 0, b: int = 0, *, number: int = 0) -> tuple[_Flow, int]:
        """With one more register, and which that is."""
        if self.registers >= _REGISTERS:
            raise NoProgram
        done = replace(self, code=(*self.code, (operation, a, b, self.registers, number)), registers=self.registers + 1)
        return done, self.registers


def is_word(kind: pa.DataType) -> bool:
    """Whether values of the type are whole numbers of one word."""
    found = kind_of(kind)
    return found is not None and not found.floating and found.halves <= 2 and not pa.types.is_unsigned_integer(kind)


def rules_of(fixpoint: Fixpoint) -> tuple[Rule, ...] | None:
    """All rules of the bodies; None if there is something that is not for compiled rounds."""
    try:
        return tuple(_rules(fixpoint))
    except NoProgram:
        return None


def _rules(fixpoint: Fixpoint) -> Iterable[Rule]:
    if any(relation.kind == "bag" or not all(map(is_word, relation.types)) for relation in fixpoint.relations):
        raise NoProgram
    flows: list[tuple[_Flow, ...]] = []
    for number, relation in enumerate(fixpoint.relations):
        count = len(relation.types) + 1
        flows.append((_Flow(number, tuple(range(count)), count),))
    for line in fixpoint.lines:
        flows.append(tuple(_through(line, flows)))
    for target, body in enumerate(fixpoint.bodies):
        for flow in flows[body] if body >= 0 else ():
            *columns, rank = flow.places
            yield Rule(flow.source, target, flow.code, flow.meetings, tuple(columns), rank, flow.registers)


def _through(line: Line, flows: Sequence[tuple[_Flow, ...]]) -> Iterable[_Flow]:
    """What comes out of a line when rows of a relation go in."""
    arriving = [(i, flow) for i, source in enumerate(line.inputs) if source >= 0 for flow in flows[source]]
    operator = line.operator
    if isinstance(operator, Arrange | Union):
        return [flow for _, flow in arriving]
    if isinstance(operator, Linear):
        chain: tuple[plan.Node, ...] | None = getattr(operator.stage, "chain", None)
        if chain is None:
            raise NoProgram
        return [_evaluated(flow, chain) for _, flow in arriving]
    if isinstance(operator, MultiJoin):
        paths = {path.input: path for path in operator.paths}
        # A relation that is arranged in several ways changes by one of them.
        return [_met(flow, paths[i], line) for i, flow in arriving if i in paths]
    raise NoProgram


def _met(flow: _Flow, path: Path, line: Line) -> _Flow:
    flow = replace(flow, places=tuple(flow.places[i] for i in path.kept))
    for lookup in path.lookups:
        source = line.inputs[lookup.input]
        if source >= 0:
            raise NoProgram
        flow = _looked_up(flow, lookup, -1 - source)
    return replace(flow, places=tuple(flow.places[i] for i in path.outputs))


def _looked_up(flow: _Flow, lookup: Lookup, source: int) -> _Flow:
    for column in lookup.not_null:
        flow = flow.then(NOT_NULL, flow.places[column])
    wanted = lookup.wanted
    columns = sorted({*lookup.found, *(theirs for _, theirs in lookup.compared)})
    first = flow.registers
    if first + len(columns) > _REGISTERS:
        raise NoProgram
    registers = {column: first + i for i, column in enumerate(columns)}
    found = tuple((column if wanted is None else wanted[column], register) for column, register in registers.items())
    meeting = Meeting(source, tuple(flow.places[i] for i in lookup.probe), found)
    number = len(flow.meetings)
    flow = replace(flow.then(LOOKUP, number=number), meetings=(*flow.meetings, meeting), registers=first + len(columns))
    for mine, theirs in lookup.compared:
        flow = flow.then(SAME, flow.places[mine], registers[theirs])
    return replace(flow, places=(*(flow.places[i] for i in lookup.kept), *(registers[i] for i in lookup.found)))


def _evaluated(flow: _Flow, chain: Iterable[plan.Node]) -> _Flow:
    for node in chain:
        if isinstance(node, plan.Filter):
            flow = _filtered(flow, node.condition)
        elif isinstance(node, plan.Project):
            before, places = flow.places, []
            for expression in node.expressions:
                flow, place = _valued(replace(flow, places=before), expression)
                places.append(place)
            flow = replace(flow, places=tuple(places))
        else:
            raise NoProgram
    return flow


def _filtered(flow: _Flow, condition: Expression) -> _Flow:
    if not isinstance(condition, Call):
        raise NoProgram
    if condition.function == "And":
        return _filtered(_filtered(flow, condition.arguments[0]), condition.arguments[1])
    if condition.function == "IsNotNull":
        flow, place = _valued(flow, condition.arguments[0])
        return flow.then(NOT_NULL, place)
    if condition.function not in _COMPARISONS:
        raise NoProgram
    comparison, turned = _COMPARISONS[condition.function]
    flow, left = _valued(flow, condition.arguments[0])
    flow, right = _valued(flow, condition.arguments[1])
    return flow.then(COMPARE, right if turned else left, left if turned else right, number=comparison)


def _valued(flow: _Flow, expression: Expression) -> tuple[_Flow, int]:
    """The register that has the value."""
    match expression:
        case Column():
            if not is_word(expression.type):
                raise NoProgram
            return flow, flow.places[expression.index]
        case Literal() if pa.types.is_signed_integer(expression.type):
            # Register a says whether it is NULL.
            missing = expression.value is None
            return flow.made(LITERAL, int(missing), number=0 if missing else int(str(expression.value)))
        case Call(function="Add" | "Subtract", arguments=(left, right)):
            bits = _bits(left), _bits(right)
            flow, a = _valued(flow, left)
            flow, b = _valued(flow, right)
            # The greatest number that the type has.
            return flow.made(_ARITHMETIC[expression.function], a, b, number=(1 << (min(bits) - 1)) - 1)
    raise NoProgram


def _bits(expression: Expression) -> int:
    """How wide the number is."""
    if isinstance(expression, Call) and expression.function in _ARITHMETIC:
        return min(map(_bits, expression.arguments))
    if expression.type is None or not pa.types.is_signed_integer(expression.type):
        raise NoProgram
    return expression.type.bit_width


@dataclass(frozen=True)
class Program:
    """Rules as arrays: instructions of all, where those of each begin; meetings of all, with registers and columns."""

    code: NDArray[np.int64]
    rules: NDArray[np.int64]
    outputs: NDArray[np.int64]
    meetings: NDArray[np.int64]
    probes: NDArray[np.int64]
    found: NDArray[np.int64]
    registers: int


def program_of(fixpoint: Fixpoint) -> Program | None:
    """The same for the loop that runs them; None if there is none."""
    rules = rules_of(fixpoint)
    if rules is None:
        return None
    code: list[tuple[int, ...]] = []
    heads: list[tuple[int, ...]] = []
    meetings: list[Meeting] = []
    for rule in rules:
        start = len(code)
        shift = len(meetings)
        code += [(op, a, b, dst, n + shift if op == LOOKUP else n) for op, a, b, dst, n in rule.code]
        meetings += rule.meetings
        heads.append((rule.source, rule.target, start, len(code), rule.rank, len(rule.columns)))
    widest = max((len(rule.columns) for rule in rules), default=0)
    return Program(
        code=_table(code, 5),
        rules=_table(heads, 6),
        outputs=_table([_padded(rule.columns, widest) for rule in rules], widest),
        meetings=_table([(each.input, len(each.probe), len(each.found)) for each in meetings], 3),
        probes=_table([_padded(each.probe, _REGISTERS) for each in meetings], _REGISTERS),
        found=np.array(
            [_padded([part for pair in each.found for part in pair], 2 * _REGISTERS) for each in meetings], np.int64
        ).reshape(len(meetings), _REGISTERS, 2),
        registers=max((rule.registers for rule in rules), default=0),
    )


def _table(rows: Sequence[Sequence[int]], width: int) -> NDArray[np.int64]:
    return np.array(rows, np.int64).reshape(len(rows), width)


def _padded(values: Sequence[int], width: int) -> tuple[int, ...]:
    return (*values, *([0] * (width - len(values))))
