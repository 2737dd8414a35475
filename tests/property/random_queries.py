"""Random queries: text composed by a typed grammar, together with the columns of the answer.

Only queries with one answer are composed: LIMIT and window functions order by all columns, so that ties are equal rows;
aggregates that depend on an order get one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from random_aggregates import Aggregates
from random_expressions import Scope, Term, renamed
from random_values import FLAT, KINDS, ORDERED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hypothesis.strategies import DrawFn

# so many tables may a query read, and so many columns does it give
MOST_SOURCES = 4
MOST_COLUMNS = 4


@dataclass(frozen=True)
class Query:
    """The text of a query, and its columns by their names."""

    sql: str
    columns: Scope

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(column.kind for column in self.columns)


class Queries(Aggregates):
    """Draws queries over relations, given by name with their columns."""

    def __init__(self, draw: DrawFn, relations: Mapping[str, Scope], *, first_name: int = 0, failing: bool = False) -> None:
        super().__init__(draw, failing=failing)
        self.relations = relations
        self.sources = 0
        self.names = first_name

    def query(self, depth: int = 2) -> Query:
        """A query of any shape."""
        shapes: list[Callable[[int], Query]] = [self.selected, self.grouped, self.distinct, self.windowed]
        if depth > 0:
            shapes += [self.selected, self.grouped, self.set_operation, self.top, self.top_of_groups]
            shapes += [self.with_common_table, self.unpivoted, self.pivoted]
        return self.pick(shapes)(depth)

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    # -- FROM

    def source(self, depth: int) -> tuple[str, Scope]:
        """Something to select from, with its columns."""
        if depth > 0 and self.sources < MOST_SOURCES - 1 and self.chance(45):
            return self._joined(depth - 1)
        sql, scope = self._single(depth)
        return self._exploded(sql, scope) if self.chance(15) else (sql, scope)

    def _single(self, depth: int) -> tuple[str, Scope]:
        alias = self.fresh("r")
        if depth > 0 and self.sources < MOST_SOURCES and self.chance(30):
            inner = self.query(depth - 1)
            return f"({inner.sql}) {alias}", _qualified(alias, inner.columns)
        if self.chance(4):
            return self._values(alias)
        self.sources += 1
        name = self.pick(list(self.relations))
        return f"{name} {alias}", _qualified(alias, self.relations[name])

    def _values(self, alias: str) -> tuple[str, Scope]:
        kinds = ["int", "string"]
        rows = [[self.constant(kind) for kind in kinds] for _ in range(self.draw(st.integers(1, 3)))]
        listed = ", ".join(f"({', '.join(value.sql for value in row)})" for row in rows)
        names = [self.fresh("c") for _ in kinds]
        columns = [Term(name, kind, KINDS[kind].bound) for name, kind in zip(names, kinds, strict=True)]
        return f"(VALUES {listed}) {alias}({', '.join(names)})", _qualified(alias, tuple(columns))

    def _joined(self, depth: int) -> tuple[str, Scope]:
        (left, a), (right, b) = self._single(depth), self._single(depth)
        kind = self.pick(["INNER", "LEFT", "INNER", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI", "CROSS", "LATERAL"])
        scope = a if kind in ("LEFT SEMI", "LEFT ANTI") else a + b
        if kind == "CROSS":
            return f"{left} CROSS JOIN {right}", scope
        if kind == "LATERAL":
            alias = self.fresh("r")
            condition = self.condition(a, b)
            columns, inner = self._listed_columns(list(b) if self.chance(60) else [self.aggregate(b)])
            return f"{left}, LATERAL (SELECT {columns} FROM {right} WHERE {condition}) {alias}", a + _qualified(alias, inner)
        both = {x.sql.split(".")[-1] for x in a} & {y.sql.split(".")[-1] for y in b if y.kind != "map"}
        if both and self.chance(10):
            return f"{left} {kind} JOIN {right} USING ({self.pick(sorted(both))})", scope
        return f"{left} {kind} JOIN {right} ON {self.condition(a, b)}", scope

    def condition(self, a: Scope, b: Scope) -> str:
        """How rows of two relations meet: mostly by equal columns, sometimes by something else too, or only."""
        pairs = [(x, y) for x in a for y in b if x.kind == y.kind and x.kind != "map"]
        parts = []
        if pairs and not self.chance(12):
            for x, y in self.some(pairs, 1, 2 if self.chance(25) else 1):
                parts.append(f"{x.sql} {self.pick(['=', '=', '<=>'])} {y.sql}")
            if self.chance(15):
                kind = self.pick(pairs)[0].kind
                parts.append(f"{self.term(kind, a, 1).sql} = {self.term(kind, b, 1).sql}")
        if not parts or self.chance(15):
            parts.append(self.predicate(a + b, 1))
        return f" {'OR' if self.chance(8) else 'AND'} ".join(parts)

    def _exploded(self, sql: str, scope: Scope) -> tuple[str, Scope]:
        alias, outer = self.fresh("e"), self.pick(["", " OUTER"])
        value, place = self.fresh("c"), self.fresh("c")
        item, word = Term(f"{alias}.{value}", "int", 20), Term(f"{alias}.{value}", "string")
        numbers = self.term("array", scope, 1).sql
        kind = self.pick(["array", "posexplode", "map", "inline", "split"])
        made, names, terms = {
            "array": (f"explode({numbers})", value, (item,)),
            "posexplode": (f"posexplode({numbers})", f"{place}, {value}", (Term(f"{alias}.{place}", "int", 20), item)),
            "map": (
                f"explode({self.leaf('map', scope).sql})",
                f"{place}, {value}",
                (Term(f"{alias}.{place}", "string"), item),
            ),
            "inline": (
                f"inline(array({self.leaf('struct', scope).sql}, {self.leaf('struct', scope).sql}))",
                f"{value}, {place}",
                (item, Term(f"{alias}.{place}", "string")),
            ),
            "split": (f"explode(split({self.leaf('string', scope).sql}, ','))", value, (word,)),
        }[kind]
        return f"{sql} LATERAL VIEW{outer} {made} {alias} AS {names}", scope + terms

    # -- WHERE

    def where(self, scope: Scope, depth: int) -> str:
        if self.chance(60):
            return ""
        parts = [self.predicate(scope, 1)]
        if depth > 0 and self.sources < MOST_SOURCES and self.chance(40):
            subquery = self._subquery_predicate(scope)
            parts.append(f"(NOT {subquery})" if self.chance(10) else subquery)
            if self.chance(40):
                parts = parts[1:]
        return f" WHERE {(' OR ' if self.chance(30) else ' AND ').join(parts)}"

    def _inner(self) -> tuple[str, Scope]:
        self.sources += 1
        name, alias = self.pick(list(self.relations)), self.fresh("q")
        return f"{name} {alias}", _qualified(alias, self.relations[name])

    def _subquery_predicate(self, scope: Scope) -> str:
        inner, columns = self._inner()
        pairs = [(x, y) for x in scope for y in columns if x.kind == y.kind and x.kind in FLAT]
        local = [self.predicate(columns, 1)] if self.chance(40) else []
        if not pairs:
            return f"EXISTS (SELECT 1 FROM {inner}{_where(local)})"
        (x, y), (u, v) = self.pick(pairs), self.pick(pairs)
        correlated = [f"{v.sql} {self.pick(['=', '=', '<=>'])} {u.sql}"]
        if self.chance(15):
            correlated.append(f"{y.sql} {self.pick(['<', '<>', '>='])} {x.sql}")
        maybe = correlated if self.chance(35) else []
        forms = [
            f"EXISTS (SELECT 1 FROM {inner}{_where(correlated + local)})",
            f"NOT EXISTS (SELECT 1 FROM {inner}{_where(correlated + local)})",
            f"{x.sql} IN (SELECT {y.sql} FROM {inner}{_where(maybe + local)})",
            f"{x.sql} NOT IN (SELECT {y.sql} FROM {inner}{_where(maybe + local)})",
            f"{x.sql} >= (SELECT max({y.sql}) FROM {inner}{_where(correlated[:1] + local)})",
            f"{x.sql} = (SELECT min({y.sql}) FROM {inner}{_where(local)})",
        ]
        return self.pick(forms)

    def _scalar(self, scope: Scope) -> Term:
        """The value of a scalar subquery."""
        inner, columns = self._inner()
        pairs = [(x, y) for x in scope for y in columns if x.kind == y.kind and x.kind in FLAT]
        correlated = []
        if pairs and self.chance(60):
            x, y = self.pick(pairs)
            correlated = [f"{y.sql} = {x.sql}"]
        value = self.aggregate(columns)
        return replace(value, sql=f"(SELECT {value.sql} FROM {inner}{_where(correlated)})")

    # -- SELECT

    def _listed_columns(self, terms: list[Term]) -> tuple[str, Scope]:
        names = [self.fresh("c") for _ in terms]
        sql = ", ".join(f"{term.sql} AS {name}" for term, name in zip(terms, names, strict=True))
        return sql, tuple(renamed(term, name) for term, name in zip(terms, names, strict=True))

    def outputs(self, scope: Scope, kinds: tuple[str, ...] | None = None) -> list[Term]:
        if kinds is not None:
            return [self.term(kind, scope, 1) for kind in kinds]
        count = self.draw(st.integers(1, MOST_COLUMNS))
        present = sorted({term.kind for term in scope}) or ["int"]
        return [self.term(self.pick(FLAT) if self.chance(10) else self.pick(present), scope) for _ in range(count)]

    def selected(self, depth: int, kinds: tuple[str, ...] | None = None) -> Query:
        sql, scope = self.source(depth)
        where = self.where(scope, depth)
        terms = self.outputs(scope, kinds)
        if kinds is None and depth > 0 and self.sources < MOST_SOURCES and self.chance(12):
            terms.append(self._scalar(scope))
        text, columns = self._listed_columns(terms)
        return Query(f"SELECT {text} FROM {sql}{where}", columns)

    def distinct(self, depth: int) -> Query:
        sql, scope = self.source(depth)
        terms = [term for term in self.outputs(scope) if term.kind in ORDERED] or [self.term("int", scope)]
        text, columns = self._listed_columns(terms)
        return Query(f"SELECT DISTINCT {text} FROM {sql}{self.where(scope, depth)}", columns)

    def grouped(self, depth: int) -> Query:
        sql, scope = self.source(depth)
        where = self.where(scope, depth)
        drawn = [self._key(scope) for _ in range(self.draw(st.integers(0, 3)))]
        keys = list({key.sql: key for key in drawn}.values())
        aggregates = [self.aggregate(scope) for _ in range(self.draw(st.integers(0 if keys else 1, 3)))]
        clause, sets = self._grouping([key.sql for key in keys])
        if sets and self.chance(50):
            aggregates.append(Term("grouping_id()", "bigint", 16))
        text, columns = self._listed_columns([*keys, *aggregates])
        having = ""
        if self.chance(30):
            known = tuple(column for column in columns if column.kind in FLAT)
            having = f" HAVING {self.predicate(known, 1)}" if known else ""
        return Query(f"SELECT {text} FROM {sql}{where}{clause}{having}", columns)

    def _key(self, scope: Scope) -> Term:
        columns = [term for term in scope if term.kind in ORDERED]
        if columns and self.chance(75):
            return self.pick(columns)
        kind = self.pick(columns).kind if columns else "int"
        made = self.term(kind, scope, 1)
        # a plain number would be taken for the place of a column
        return replace(made, sql=f"CAST({made.sql} AS INT)") if made.sql.strip("(-)").isdigit() else made

    def _grouping(self, keys: list[str]) -> tuple[str, bool]:
        if not keys:
            return "", False
        listed = ", ".join(keys)
        if not self.chance(35):
            return f" GROUP BY {listed}", False
        subsets = [self.some(keys, 0, len(keys)) for _ in range(self.draw(st.integers(1, 3)))]
        sets = ", ".join(f"({', '.join(subset)})" for subset in [keys, *subsets])
        return self.pick(
            [
                (f" GROUP BY ROLLUP ({listed})", True),
                (f" GROUP BY CUBE ({listed})", True),
                (f" GROUP BY GROUPING SETS ({sets})", True),
            ]
        )

    def windowed(self, depth: int) -> Query:
        sql, scope = self.source(depth)
        scope = tuple(term for term in scope if term.kind in ORDERED)
        where = self.where(scope, depth)
        if not scope:
            return self.selected(0)
        terms = self.some(scope, 1, 3) + [self.window(scope) for _ in range(self.draw(st.integers(1, 2)))]
        text, columns = self._listed_columns(terms)
        return Query(f"SELECT {text} FROM {sql}{where}", columns)

    def set_operation(self, depth: int) -> Query:
        first = self.selected(depth - 1)
        if not all(kind in ORDERED for kind in first.kinds):
            return first
        second = self.selected(depth - 1, first.kinds)
        operator = self.pick(["UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
        columns = tuple(
            replace(a, bound=max(a.bound, b.bound), exact=a.exact and b.exact)
            for a, b in zip(first.columns, second.columns, strict=True)
        )
        return Query(f"({first.sql}) {operator} ({second.sql})", columns)

    def top(self, depth: int) -> Query:
        """The first rows in a total order."""
        inner = self.query(depth - 1)
        if not all(kind in FLAT for kind in inner.kinds):
            return inner
        names = [column.sql for column in inner.columns]
        order = ", ".join(f"{name}{self._direction()}" for name in self.draw(st.permutations(names)))
        offset = f" OFFSET {self.draw(st.integers(0, 3))}" if self.chance(30) else ""
        limit = f" LIMIT {self.draw(st.integers(0, 5))}" if not offset or self.chance(60) else ""
        alias = self.fresh("r")
        return Query(f"SELECT {alias}.* FROM ({inner.sql}) {alias} ORDER BY {order}{limit}{offset}", inner.columns)

    def top_of_groups(self, depth: int) -> Query:
        inner = self.windowed(depth)
        place = [column for column in inner.columns if column.kind == "int"]
        if not place:
            return inner
        alias = self.fresh("r")
        return Query(f"SELECT {alias}.* FROM ({inner.sql}) {alias} WHERE {place[-1].sql} <= 2", inner.columns)

    def pivoted(self, depth: int) -> Query:
        inner = self.selected(depth - 1, ("string", "int", "int"))
        key, by, value = inner.columns
        names = [self.fresh("c") for _ in range(2)]
        function = self.pick(["sum", "max", "count"])
        kinds = {"sum": "bigint", "max": "int", "count": "bigint"}
        made = tuple(Term(name, kinds[function], 10**5 * (1 + value.bound)) for name in names)
        places = ", ".join(f"{place} AS {name}" for place, name in zip((1, 2), names, strict=True))
        pivot = f"PIVOT ({function}({value.sql}) FOR {by.sql} IN ({places}))"
        return Query(f"SELECT * FROM ({inner.sql}) {pivot}", (key, *made))

    def with_common_table(self, depth: int) -> Query:
        """A query that reads another, under a name, once or several times."""
        common, name = self.query(depth - 1), self.fresh("w")
        outer = self.relations
        self.relations = {**outer, name: common.columns} if self.chance(50) else {name: common.columns}
        self.sources = min(self.sources, MOST_SOURCES - 2)
        query = self.pick([self.selected, self.grouped, self.set_operation])(depth)
        self.relations = outer
        return Query(f"WITH {name} AS ({common.sql}) {query.sql}", query.columns)

    def unpivoted(self, depth: int) -> Query:
        inner = self.selected(depth - 1, ("string", "int", "int"))
        key, a, b = inner.columns
        names = self.fresh("c"), self.fresh("c"), self.fresh("r")
        nulls = self.pick(["", " INCLUDE NULLS"])
        columns = (key, Term(names[0], "string"), Term(names[1], "int", max(a.bound, b.bound)))
        return Query(
            f"SELECT * FROM ({inner.sql}) UNPIVOT{nulls} ({names[1]} FOR {names[0]} IN ({a.sql}, {b.sql})) {names[2]}", columns
        )


def _qualified(alias: str, columns: Scope) -> Scope:
    return tuple(replace(column, sql=f"{alias}.{column.sql}") for column in columns)


def _where(parts: list[str]) -> str:
    return f" WHERE {' AND '.join(parts)}" if parts else ""


def columns_of_table(columns: Mapping[str, str]) -> Scope:
    """The scope that a table's columns make, given by name with their kinds."""
    return tuple(Term(name, kind, KINDS[kind].bound) for name, kind in columns.items())
