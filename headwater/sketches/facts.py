"""What is known where sketches are judged: of tables, of the rows that an operator gives, and what makes a sketch unsafe."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from headwater.algebra.expressions import Column, Expression
from headwater.sketches.comparing import EQUAL, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    # The number of a scan in the plan, from the top, and a column of its table.
    Access = tuple[int, int]


class Unsafe(Exception):
    """The operator at which a sketch would change the answer, and why."""

    def __init__(self, operator: str, reason: str) -> None:
        super().__init__(f"{operator}: {reason}")
        self.operator = operator
        self.reason = reason


@dataclass(frozen=True)
class Guard:
    """A fact that a sketch relies on: `kind` is "≥ 0", "≤ 0" or "not null"."""

    table: str
    column: int
    kind: str

    def holds(self, values: pa.Array) -> bool:
        """Whether it is true of these values of the column."""
        if self.kind == "not null":
            return not values.null_count
        ends = pc.min_max(values)
        end = (ends["min"] if self.kind == "≥ 0" else ends["max"]).as_py()
        return end is None or bool(end >= 0 if self.kind == "≥ 0" else end <= 0)


@dataclass(frozen=True)
class State:
    """What is known of the rows that an operator gives.

    `sights` are the columns that equal the attribute of an access; `key` are columns that tell all rows apart.
    """

    values: tuple[Value, ...]
    sights: Mapping[Access, frozenset[int]] = field(default_factory=dict)
    cut: bool = False
    key: frozenset[int] | None = None

    def lookup(self, expression: Expression) -> Value | None:
        return self.values[expression.index] if isinstance(expression, Column) else None

    @property
    def whole(self) -> State:
        """The same behind a barrier."""
        return State(tuple(replace(value, relation=EQUAL) for value in self.values), {}, cut=False, key=self.key)


@dataclass(frozen=True)
class Facts:
    """What is known of tables: the columns that tell rows apart, columns that are never NULL, and what is relied on."""

    keys: Mapping[str, frozenset[int]] = field(default_factory=dict)
    never_null: frozenset[tuple[str, int]] = frozenset()
    guards: frozenset[Guard] = frozenset()

    def value(self, table: str, column: int) -> Value:
        low = 0.0 if Guard(table, column, "≥ 0") in self.guards else -inf
        high = 0.0 if Guard(table, column, "≤ 0") in self.guards else inf
        certain = (table, column) in self.never_null or Guard(table, column, "not null") in self.guards
        return Value(EQUAL, low, high, nullable=not certain)
