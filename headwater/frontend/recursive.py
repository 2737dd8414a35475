"""Recursive queries in: Spark analyses each relation over stand-ins for the others, and we put them together.

    WITH RECURSIVE r(a, b) AS (base UNION step(r)), s AS (…r…) SELECT … FROM s
      →  r = Fixpoint(base ⊎ step(X)),   s = its query over r,   and the query over s

Relations that reach each other are one fixpoint; the others are queries over those before them. The columns of a recursive
relation are those of the branches that do not need it; then Spark says what their union with the other branches would be, and
if that is wider (INT and BIGINT), the relation is that, and is analysed again.

A recursion that stands in parentheses within a query is put together first, and is one more relation to the query around it:

    SELECT … FROM (WITH RECURSIVE r AS (…) SELECT … FROM r) AS x   →   SELECT … FROM (SELECT * FROM recursion1) AS x
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from pyspark.sql.types import NullType, StructField, StructType

from headwater.algebra import plan
from headwater.algebra.plan import Fixpoint, Join, Limits, Node, Recursive, Scan
from headwater.errors import InvalidQuery, NotSupported, UnknownName
from headwater.frontend.catalyst import Query
from headwater.frontend.statements import parse_query
from headwater.frontend.statements.ctes import Recursion, read_recursion, recursions_within
from headwater.schema import COLLATED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.frontend.catalyst import Analyser
    from headwater.frontend.statements.ctes import Relation

# So often the types of a relation may become wider: `x * 1.5` of decimals would for ever.
_WIDENINGS = 8
_UNLIMITED = 1 << 62
_LEVELS = "spark.sql.cteRecursionLevelLimit"
_ROWS = "spark.sql.cteRecursionRowLimit"


def recursive_query(analyser: Analyser, text: str, relations: Mapping[str, StructType], view: str | None) -> Query | None:
    """What a query means that begins with WITH RECURSIVE, or has one within; None if it has none."""
    query = parse_query(text)
    recursion = read_recursion(query)
    if recursion is None and not recursions_within(query):
        return None
    return composed(analyser, recursion or Recursion((), query), query, relations, view)


def composed(
    analyser: Analyser, recursion: Recursion, text: str, relations: Mapping[str, StructType], view: str | None
) -> Query:
    """The query of a recursion that was written as `text`."""
    composing = _Composing(analyser, recursion, relations, view)
    for group in _groups(recursion.relations, composing.reads):
        composing.add(group)
    main = composing.analysed("the query", recursion.query)
    named = tuple((name, schema) for name, schema in relations.items() if name in composing.sources)
    root = composing.placed(main)
    reading = replace(analyser.moment(text, view), relations=named)
    return Query(reading, main.schema, frozenset(composing.sources), root)


@dataclass(frozen=True)
class _Known:
    """A relation that is defined already."""

    schema: StructType
    node: Node


class _Composing:
    """Relations as they become known."""

    def __init__(self, analyser: Analyser, recursion: Recursion, relations: Mapping[str, StructType], view: str | None) -> None:
        self._analyser = analyser
        self._view = view
        self._names = [relation.name.lower() for relation in recursion.relations]
        self._tables = {name: schema for name, schema in relations.items() if name.lower() not in self._names}
        self._relations = relations
        self._within: dict[str, str] = {}
        self._known: dict[str, _Known] = {}
        self.sources: set[str] = set()
        self.reads = {
            relation.name.lower(): [self._reads(branch) for branch in relation.branches] for relation in recursion.relations
        }

    def _reads(self, branch: str) -> set[str]:
        """Which of the relations a query names."""
        parsed = self._analyser.parsed(branch).lower()
        return {name for name in self._names if f"unresolvedrelation [{name}]," in parsed}

    def analysed(self, what: str, text: str, schemas: Mapping[str, StructType] | None = None) -> Query:
        """What Spark makes of a text over what is known, and some more schemas."""
        text = self._without_recursions(text)
        known = {name: each.schema for name, each in self._known.items()}
        query = self._analyser.sql(text, {**self._tables, **known, **(schemas or {})}, self._view)
        if query.root is None:
            raise NotSupported(f"{what} has {query.unreadable}, which cannot stand beside WITH RECURSIVE")
        if plan.is_collated(query.root) or any(COLLATED in kind for kind in _types(query.schema)):
            raise NotSupported(
                f"{what} has strings with a collation of their own, which cannot stand beside WITH RECURSIVE; "
                "give them the collation UTF8_BINARY in the query, and compare lower(x) instead of x"
            )
        self.sources |= {name for name in query.sources if name.lower() not in self._names and name.lower() not in self._known}
        return query

    def _without_recursions(self, text: str) -> str:
        """The text with names in place of the recursions within it, which are known from then on."""
        for start, end in reversed(recursions_within(text)):
            inner = text[start:end]
            known = {name: each.schema for name, each in self._known.items()}
            try:
                query = recursive_query(self._analyser, inner, {**self._tables, **known}, self._view)
            except UnknownName as error:
                raise NotSupported(
                    "a WITH RECURSIVE within a query sees tables, views, and relations of a WITH RECURSIVE before it, but "
                    f"nothing else of the query around it; put it at the beginning of the whole query: {error}"
                ) from error
            assert query is not None
            name = self._fresh(inner)
            self.sources |= {source for source in query.sources if source.lower() not in self._known}
            self._known[name] = _Known(query.schema, self.placed(query))
            text = f"{text[:start]}SELECT * FROM {name}{text[end:]}"
        return text

    def _fresh(self, inner: str) -> str:
        """The name of a recursion within: the same text has the same one."""
        if inner not in self._within:
            used = {name.lower() for name in self._relations} | set(self._names) | set(self._known)
            self._within[inner] = next(name for i in count(1) if (name := f"recursion{i}") not in used)
        return self._within[inner]

    def placed(self, query: Query, numbers: Mapping[str, int] | None = None) -> Node:
        """The plan of a query, with what its names stand for: relations by their numbers in a fixpoint, others as they are."""
        assert query.root is not None
        return self._placed(query.root, numbers or {})

    def _placed(self, node: Node, numbers: Mapping[str, int]) -> Node:
        if isinstance(node, Scan):
            name = node.source.lower()
            if name in numbers:
                return Recursive(types=node.types, relation=numbers[name])
            return self._known[name].node if name in self._known else node
        return plan.rewritten(node, lambda child: self._placed(child, numbers))

    def add(self, group: Sequence[Relation]) -> None:
        """Defines relations that reach each other, or one that does not reach itself."""
        names = {relation.name.lower() for relation in group}
        if len(group) == 1 and not any(names & read for read in self.reads[group[0].name.lower()]):
            relation = group[0]
            word = "\nUNION\n" if relation.duplicates is False else "\nUNION ALL\n"
            query = self.analysed(f"relation {relation.name!r}", _united(relation.branches, word))
            self._known[relation.name.lower()] = _Known(_renamed(relation, query.schema), self.placed(query))
            return
        duplicates = _duplicates(group)
        schemas = self._first_schemas(group, names)
        queries: dict[str, Query] = {}
        for _ in range(_WIDENINGS):
            queries = {
                relation.name.lower(): self.analysed(
                    f"relation {relation.name!r}", _united(relation.branches, "\nUNION ALL\n"), schemas
                )
                for relation in group
            }
            found = {relation.name.lower(): _renamed(relation, queries[relation.name.lower()].schema) for relation in group}
            if all(_types(found[name]) == _types(schemas[name]) for name in names):
                break
            schemas = {name: _named_as(found[name], schemas[name]) for name in names}
        else:
            raise _unsettled(group, schemas)
        numbers = {relation.name.lower(): i for i, relation in enumerate(group)}
        bodies = [self.placed(queries[relation.name.lower()], numbers) for relation in group]
        relations = tuple(
            plan.Relation(name=relation.name, body=body, duplicates=duplicates)
            for relation, body in zip(group, bodies, strict=True)
        )
        limits = self._limits(group)
        for i, relation in enumerate(group):
            node = Fixpoint(types=bodies[i].types, relations=relations, result=i, limits=limits)
            self._known[relation.name.lower()] = _Known(schemas[relation.name.lower()], node)

    def _first_schemas(self, group: Sequence[Relation], names: set[str]) -> dict[str, StructType]:
        """The columns of each relation, from those of its branches that can be analysed before it is known itself."""
        schemas: dict[str, StructType] = {}
        while len(schemas) < len(group):
            ready = None
            for relation in group:
                name = relation.name.lower()
                reads = self.reads[name]
                texts = [text for text, read in zip(relation.branches, reads, strict=True) if not (read & names) - set(schemas)]
                if name not in schemas and texts:
                    ready = relation
                    break
            if ready is None:
                return self._circular_schemas(group, names, schemas)
            query = self.analysed(f"relation {ready.name!r}", _united(texts, "\nUNION ALL\n"), schemas)
            schemas[ready.name.lower()] = _renamed(ready, query.schema)
        return schemas

    def _circular_schemas(
        self, group: Sequence[Relation], names: set[str], schemas: Mapping[str, StructType]
    ) -> dict[str, StructType]:
        """The columns of a recursion that begins nowhere but in what is not there: it is refused later, by the cycle.

        A relation that names its columns can be analysed as one of NULLs, which take the types of what they meet.
        """
        missing = [relation for relation in group if relation.name.lower() not in schemas]
        if all(relation.columns for relation in missing):
            void = {r.name.lower(): StructType([StructField(c, NullType()) for c in r.columns or ()]) for r in missing}
            bodies = [
                self.analysed(f"relation {r.name!r}", _united(r.branches, "\nUNION ALL\n"), {**schemas, **void}) for r in group
            ]
            if any(_vanishes(body.root, names) for body in bodies if body.root is not None):
                return {**schemas, **void}
        cycle = ", ".join(repr(relation.name) for relation in missing)
        raise InvalidQuery(
            f"the recursion of {cycle} begins nowhere: every branch reads what it defines; add a branch that does not"
        )

    def _limits(self, group: Sequence[Relation]) -> Limits:
        usual = Limits()
        levels = [relation.level for relation in group if relation.level is not None]
        setting = self._analyser.setting(_LEVELS)
        rounds = max(levels) if levels else usual.rounds if setting is None else int(setting)
        rows = self._analyser.setting(_ROWS)
        touched = usual.rows if rows is None else int(rows)
        return Limits(rounds if rounds >= 0 else _UNLIMITED, touched if touched >= 0 else _UNLIMITED)


def _groups(relations: Sequence[Relation], reads: Mapping[str, Sequence[set[str]]]) -> list[list[Relation]]:
    """The relations that reach each other together, and each group after those it reads."""
    direct = {name: set().union(*found) for name, found in reads.items()}
    reached = {name: set(found) for name, found in direct.items()}
    for middle, beyond in reached.items():
        for found in reached.values():
            if middle in found:
                found.update(beyond)
    groups: list[list[Relation]] = []
    for relation in relations:
        name = relation.name.lower()
        together = [
            r for r in relations if r is relation or (name in reached[r.name.lower()] and r.name.lower() in reached[name])
        ]
        if together not in groups:
            groups.append(together)
    ordered: list[list[Relation]] = []
    done: set[str] = set()
    while groups:
        ready = next(group for group in groups if _outside(group, direct) <= done)
        groups.remove(ready)
        ordered.append(ready)
        done |= {relation.name.lower() for relation in ready}
    return ordered


def _outside(group: Sequence[Relation], direct: Mapping[str, set[str]]) -> set[str]:
    names = {relation.name.lower() for relation in group}
    return set().union(*(direct[name] for name in names)) - names


def _vanishes(node: Node, names: set[str]) -> bool:
    """Whether rows of a plan may be there because rows of these relations are not."""
    if isinstance(node, Join) and node.kind != "inner" and _reads(node.right, names):
        return node.kind != "semi" or _vanishes(node.left, names) or _vanishes(node.right, names)
    return any(_vanishes(child, names) for child in node.children)


def _reads(node: Node, names: set[str]) -> bool:
    return any(isinstance(part, Scan) and part.source.lower() in names for part in plan.walk(node))


def _duplicates(group: Sequence[Relation]) -> bool:
    """Whether the relations are bags; they are all sets, or all bags."""
    said = {relation.duplicates for relation in group if relation.duplicates is not None}
    if len(said) > 1:
        names = ", ".join(repr(relation.name) for relation in group)
        raise NotSupported(f"{names} are defined by each other, some by UNION and some by UNION ALL; take the same for all")
    return said == {True}


def _united(branches: Sequence[str], word: str) -> str:
    return branches[0] if len(branches) == 1 else word.join(f"(\n{branch}\n)" for branch in branches)


def _renamed(relation: Relation, schema: StructType) -> StructType:
    """The columns under the names that the relation gives them."""
    if relation.columns is None:
        return schema
    if len(relation.columns) != len(schema.fields):
        raise InvalidQuery(f"{relation.name!r} names {len(relation.columns)} columns, but its query has {len(schema.fields)}")
    return StructType([StructField(name, f.dataType) for name, f in zip(relation.columns, schema.fields, strict=True)])


def _named_as(schema: StructType, names: StructType) -> StructType:
    return StructType([StructField(n.name, f.dataType) for f, n in zip(schema.fields, names.fields, strict=True)])


def _types(schema: StructType) -> list[str]:
    return [field.dataType.simpleString() for field in schema.fields]


def _unsettled(group: Sequence[Relation], schemas: Mapping[str, StructType]) -> InvalidQuery:
    name = group[0].name
    return InvalidQuery(
        f"the types of the columns of {name!r} become wider in every round, by now {', '.join(_types(schemas[name.lower()]))}; "
        "CAST the columns of its recursive branches to the types they should have"
    )
