"""Random scalar expressions of a wanted kind over the columns of a scope; unless `failing`, they never overflow or raise.

Every term knows a bound of its absolute value: integer arithmetic whose result may leave the type is not composed. `exact` is
false for doubles that are no multiples of 1/8 any more: these may be compared, but their sum depends on the order of the rows.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from hypothesis import strategies as st
from random_values import FLAT, KINDS, NUMBERS, literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hypothesis.strategies import DrawFn

T = TypeVar("T")

LIMITS = {"int": 2**31 - 1, "bigint": 2**62, "decimal": 10**15, "double": 2**40}
_PLACES = re.compile(r"\{(\w+)\}")
COMPARISONS = ("=", "<", ">", "<=", ">=", "<>", "<=>")


@dataclass(frozen=True)
class Term:
    """An expression, or a column, in SQL."""

    sql: str
    kind: str
    bound: int = 0
    exact: bool = True


Scope = tuple[Term, ...]


@dataclass(frozen=True)
class Form:
    """A way to make a term: SQL in which `{int}` stands for any term of that kind; its bound from those of its parts."""

    sql: str
    bound: int | Callable[[list[int]], int] = max
    exact: bool = True


_CONDITIONAL = (
    Form("CASE WHEN {predicate} THEN {same} ELSE {same} END"),
    Form("CASE WHEN {predicate} THEN {same} END"),
    Form("if({predicate}, {same}, {same})"),
    Form("coalesce({same}, {same})"),
)
_COMPARED = (Form("nullif({same}, {same})"), Form("greatest({same}, {same})"), Form("least({same}, {same})"))
_ARITHMETIC = (Form("({same} + {same})", sum), Form("({same} - {same})", sum), Form("({same} * {same})", math.prod))

FORMS: dict[str, tuple[Form, ...]] = {
    "int": (
        *_ARITHMETIC,
        *_ARITHMETIC,
        Form("abs({int})"),
        Form("(- {int})"),
        Form("({int} % 3)"),
        Form("pmod({int}, 3)"),
        Form("length({string})", 1000),
        Form("CAST({predicate} AS INT)", 1),
        Form("year({date})", 3000),
        Form("month({timestamp})", 12),
        Form("datediff({date}, DATE'2024-01-01')", 10**6),
        Form("size({array})", 100),
        Form("{struct}.x", 1000),
        Form("instr({string}, 'b')", 1000),
        Form("CAST({tinyint} AS INT)", 128),
        Form("element_at({map}, 'a')", 10),
        Form("array_max({array})", 10**6),
        Form("CAST(sign({int}) AS INT)", 1),
    ),
    "bigint": (
        *_ARITHMETIC,
        Form("CAST({int} AS BIGINT)"),
        Form("({int} div 2)"),
        Form("unix_seconds(CAST({date} AS TIMESTAMP))", 10**12),
    ),
    "double": (
        *_ARITHMETIC,
        Form("CAST({int} AS DOUBLE)"),
        Form("CAST({float} AS DOUBLE)", 10),
        Form("abs({double})"),
        Form("(- {double})"),
        Form("nanvl({double}, 1.0D)"),
        Form("({double} / 3.0D)", exact=False),
        Form("({int} / 7)", exact=False),
        Form("round({double}, 1)", exact=False),
        Form("sqrt(abs({int}))", exact=False),
    ),
    "decimal": (
        Form("({decimal} + {decimal})", sum),
        Form("({decimal} * {int})", math.prod),
        Form("CAST({int} AS DECIMAL(12,3))"),
        Form("abs({decimal})"),
        Form("round({decimal}, 1)"),
        Form("({decimal} / 4.0BD)"),
    ),
    "string": (
        Form("({string} || {string})"),
        Form("upper({string})"),
        Form("lower({string})"),
        Form("trim({string})"),
        Form("substring({string}, 1, 1)"),
        Form("concat_ws('-', {string}, {string})"),
        *(Form(f"CAST({{{kind}}} AS STRING)") for kind in ("int", "date", "boolean", "decimal", "wide", "timestamp", "double")),
        Form("replace({string}, 'a', {string})"),
        Form("reverse({string})"),
        Form("lpad({string}, 3, 'x')"),
        Form("{struct}.y"),
        Form("date_format({timestamp}, 'yyyy-MM')"),
    ),
    "boolean": (Form("({predicate})"),),
    "date": (
        Form("date_add({date}, pmod({int}, 5))"),
        Form("last_day({date})"),
        Form("CAST({timestamp} AS DATE)"),
        Form("trunc({date}, 'MM')"),
        Form("CAST({date} + INTERVAL '1' MONTH AS DATE)"),
    ),
    "timestamp": (
        Form("date_trunc('DAY', {timestamp})"),
        Form("({timestamp} + INTERVAL '1' HOUR)"),
        Form("CAST({date} AS TIMESTAMP)"),
    ),
    "array": (
        Form("array({int}, {int})"),
        Form("sort_array({array})"),
        Form("array_distinct({array})"),
        Form("transform({array}, x -> x + 1)"),
        Form("filter({array}, x -> x > 1)"),
        Form("slice({array}, 1, 1)"),
    ),
    "struct": (Form("named_struct('x', {int}, 'y', {string})"),),
}
# what ANSI SQL answers with an error, for some values
FAILING: dict[str, tuple[Form, ...]] = {
    "int": (Form("CAST({string} AS INT)", 10), Form("{array}[{int}]", 100), Form("CAST({wide} AS INT)", 10)),
    "bigint": (Form("({bigint} div {int})"), Form("CAST({wide} + {int} AS BIGINT)", 1000), Form("CAST({double} AS BIGINT)")),
    "double": (Form("({int} / {int})", exact=False), Form("CAST({string} AS DOUBLE)", exact=False)),
    "decimal": (Form("({decimal} / {int})"), Form("CAST({decimal} * 1e9BD AS DECIMAL(10,2))")),
    "boolean": (Form("CAST({string} AS BOOLEAN)"),),
    "date": (Form("CAST({string} AS DATE)"),),
}
_TESTS = (Form("({column} IS NULL)"), Form("({column} IS NOT NULL)"))
_COMPARISONS = tuple(Form(f"({{column}} {operator} {{comparable}})") for operator in COMPARISONS)
_LISTS = (
    Form("({column} IN ({constant}, {constant}))"),
    Form("({column} NOT IN ({constant}, {constant}))"),
    Form("({column} IN ({constant}, NULL))"),
    Form("({column} NOT IN ({constant}, NULL))"),
    Form("({column} BETWEEN {constant} AND {comparable})"),
)
_OF_STRINGS = tuple(Form(f"({{column}} LIKE '{pattern}')") for pattern in ("a%", "%b", "_", "%a%", "", "\\\\%"))
_OF_TRUTH = (Form("{column}"), Form("({column} IS TRUE)"), Form("({column} IS NOT FALSE)"))


class Expressions:
    """Draws terms and predicates; with `failing`, some that raise an error for some rows."""

    def __init__(self, draw: DrawFn, *, failing: bool = False) -> None:
        self.draw = draw
        self.failing = failing

    def pick(self, options: Sequence[T]) -> T:
        return self.draw(st.sampled_from(options))

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) >= 100 - percent

    def some(self, options: Sequence[T], least: int, most: int) -> list[T]:
        """Some of the options, each at most once, in their order."""
        if not options:
            return []
        least, most = min(least, len(options)), min(most, len(options))
        chosen = self.draw(st.lists(st.integers(0, len(options) - 1), min_size=least, max_size=most, unique=True))
        return [options[i] for i in sorted(chosen)]

    def constant(self, kind: str) -> Term:
        return Term(literal(kind, self.pick(KINDS[kind].values)), kind, KINDS[kind].bound)

    def leaf(self, kind: str, scope: Scope) -> Term:
        columns = [term for term in scope if term.kind == kind]
        if columns and not self.chance(15):
            return self.pick(columns)
        return self.constant(kind)

    def term(self, kind: str, scope: Scope, depth: int = 2) -> Term:
        """An expression of the kind."""
        if depth == 0 or self.chance(45):
            return self.leaf(kind, scope)
        choices = [*FORMS.get(kind, ()), *_CONDITIONAL, *(_COMPARED if kind in FLAT else ())]
        if self.failing and kind in FAILING and self.chance(40):
            choices = list(FAILING[kind])
        elif not self.chance(10):
            present = {term.kind for term in scope} | {"same", "predicate"}
            choices = [form for form in choices if present.issuperset(_PLACES.findall(form.sql))]
        made = self.filled(self.pick(choices), kind, scope, depth - 1)
        return made if made.bound <= LIMITS.get(kind, made.bound) else self.leaf(kind, scope)

    def filled(self, form: Form, kind: str, scope: Scope, depth: int, column: Term | None = None) -> Term:
        """A term of the form, with new terms in its places."""
        parts: list[Term] = []

        def part(place: re.Match[str]) -> str:
            name = place[1]
            if name == "predicate":
                return self.predicate(scope, depth)
            if name == "column":
                assert column is not None
                return column.sql
            if name == "constant":
                return self.constant(kind).sql
            wanted = {"same": kind, "comparable": self._comparable(kind) if name == "comparable" else kind}.get(name, name)
            parts.append(self.term(wanted, scope, depth))
            return parts[-1].sql

        sql = _PLACES.sub(part, form.sql)
        bounds = [term.bound for term in parts] or [0]
        bound = form.bound if isinstance(form.bound, int) else form.bound(bounds)
        return Term(sql, kind, bound, form.exact and all(term.exact for term in parts if term.kind == "double"))

    def _comparable(self, kind: str) -> str:
        """A kind of values that can be compared with it."""
        return self.pick([kind, kind, kind, *NUMBERS]) if kind in NUMBERS else kind

    def predicate(self, scope: Scope, depth: int = 2) -> str:
        """A condition on the columns."""
        if depth == 0 or self.chance(60):
            return self._simple(scope, depth)
        first = self.predicate(scope, depth - 1)
        if self.chance(25):
            return f"(NOT {first})"
        return f"({first} {self.pick(['AND', 'OR'])} {self.predicate(scope, depth - 1)})"

    def _simple(self, scope: Scope, depth: int) -> str:
        if not scope:
            return self.pick(["TRUE", "1 = 1"])
        column = self.pick(scope)
        choices = list(_TESTS) if column.kind == "map" else [*_COMPARISONS, *_TESTS[1:], *_TESTS]
        choices += _LISTS if column.kind in FLAT else ()
        choices += _OF_STRINGS if column.kind == "string" else ()
        choices += _OF_TRUTH if column.kind == "boolean" else ()
        return self.filled(self.pick(choices), column.kind, scope, min(depth, 1), column).sql


def renamed(term: Term, name: str) -> Term:
    return replace(term, sql=name)
