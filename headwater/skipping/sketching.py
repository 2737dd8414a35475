"""Sketches of a session: which accesses of a query can be sketched and by what, and which sketch serves a query.

A sketch is a live view. Its plan is made of the plan of the query (`sketches.capture`); to build it is to capture the sketch,
and every commit keeps it up to date, at its epoch, on either placement, and on disk, as it does any view.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql.types import LongType, StructField, StructType

from headwater.algebra import plan
from headwater.algebra.expressions import Literal, rewrite
from headwater.annotations.fragments import is_partitionable
from headwater.errors import InvalidOption, NotSupported, UnknownName, UnsafeSketch
from headwater.frontend.catalyst import Query
from headwater.runtime.catalog import TableEntry
from headwater.sketches.capture import sketch_plan, visible
from headwater.sketches.captured import Captured, Covered
from headwater.sketches.comparing import is_number
from headwater.sketches.facts import Facts, Guard, Unsafe
from headwater.sketches.reuse import serves
from headwater.sketches.safety import barriers
from headwater.sketches.tuning import Tuning, tuned
from headwater.sketches.uniting import united
from headwater.skipping.partitioning import column_of, require_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    from headwater.annotations.fragments import Partition
    from headwater.runtime.catalog import Catalog, Snapshot
    from headwater.sketches.capture import TypeOf
    from headwater.sketches.facts import Access

    On = Mapping[str, str | Sequence[str]]

_SCHEMA = StructType([StructField("access", LongType()), StructField("fragment", LongType())])


@dataclass(frozen=True)
class Choice:
    """What can be sketched of a query: the accesses, the barriers that make them safe, and the facts that they rely on."""

    accesses: tuple[Access, ...]
    barriers: frozenset[int]
    guards: tuple[Guard, ...]
    witnesses: bool = False
    tuning: Tuning = field(default_factory=Tuning)


def scans_of(root: plan.Node) -> list[plan.Scan]:
    """The accesses of tables and views, from the top."""
    return [node for node in plan.walk(root) if isinstance(node, plan.Scan)]


def wanted(now: Catalog, query: Query, on: On) -> list[Access]:
    """The accesses that are named by tables and columns."""
    if query.root is None:
        raise NotSupported(f"a sketch needs a plan that Headwater can read, and this query has {query.unreadable}")
    if plan.is_collated(query.root):
        raise NotSupported("a sketch compares strings by their bytes, and this query has some with a collation of their own")
    if not isinstance(on, Mapping) or not on:
        raise InvalidOption('on says which tables are sketched by which columns, as in on={"sales": "price"}')
    scans = scans_of(query.root)
    found: list[Access] = []
    for name, columns in on.items():
        table = now.entries.get(name.lower()) if isinstance(name, str) else None
        if not isinstance(table, TableEntry):
            raise UnknownName(f"there is no table {name!r}")
        numbers = [i for i, scan in enumerate(scans) if scan.source.lower() == table.name.lower()]
        if not numbers:
            raise InvalidOption(f"the query does not read table {table.name!r}")
        listed = [columns] if isinstance(columns, str) else list(columns)
        if not listed:
            raise InvalidOption(f"name the column by which table {table.name!r} is sketched")
        found += [(number, column_of(table, column)) for number in numbers for column in listed]
    return list(dict.fromkeys(found))


def facts_of(now: Catalog, root: plan.Node, guards: Iterable[Guard] = ()) -> Facts:
    """What is known of the tables that a plan reads: their keys, and what can never be NULL there."""
    tables = {scan.source.lower(): now.tables.get(scan.source.lower()) for scan in scans_of(root)}
    keys = {name: frozenset(table.key) for name, table in tables.items() if table is not None and table.key is not None}
    certain = {(name, column) for name, key in keys.items() for column in key}
    for name, table in tables.items():
        fields = table.schema.fields if table is not None else []
        certain |= {(name, i) for i, field in enumerate(fields) if not field.nullable}
    return Facts(keys, frozenset(certain), frozenset(guards))


def chosen(now: Catalog, root: plan.Node, accesses: Sequence[Access], holds: Callable[[Guard], bool]) -> Choice:
    """Those of the accesses that are safe, at least one of each table; raises `UnsafeSketch` otherwise.

    `holds` says whether a fact is true of a table now.
    """
    safe: list[Access] = []
    reasons: dict[str, Unsafe] = {}
    scans = scans_of(root)
    for access in accesses:
        try:
            _settled(now, root, [*safe, access], holds)
        except Unsafe as reason:
            reasons.setdefault(scans[access[0]].source, reason)
        else:
            safe.append(access)
    for table, why in reasons.items():
        if not any(scans[number].source == table for number, _ in safe):
            columns = sorted({now.tables[table.lower()].arrow.names[c] for n, c in accesses if scans[n].source == table})
            raise UnsafeSketch(table, columns, why.operator, why.reason)
    return _settled(now, root, safe, holds)


def _settled(now: Catalog, root: plan.Node, accesses: Sequence[Access], holds: Callable[[Guard], bool]) -> Choice:
    """The same accesses, if they are safe: with as few facts as that needs."""
    try:
        return Choice(tuple(accesses), barriers(root, accesses, facts_of(now, root)), ())
    except Unsafe as reason:
        unaided = reason
    for sign in ("≥ 0", "≤ 0"):
        guards = _needed(now, root, accesses, sign)
        if guards is not None and all(map(holds, guards)):
            return Choice(tuple(accesses), barriers(root, accesses, facts_of(now, root, guards)), tuple(guards))
    raise unaided


def _needed(now: Catalog, root: plan.Node, accesses: Sequence[Access], sign: str) -> list[Guard] | None:
    """Facts with which the accesses are safe, none of which can be left out; None if there are none."""
    guards: list[Guard] = []
    for name in dict.fromkeys(scan.source.lower() for scan in scans_of(root)):
        if name in now.tables:
            types = now.tables[name].arrow.types
            guards += [Guard(name, i, sign) for i, kind in enumerate(types) if is_number(kind)]
            guards += [Guard(name, i, "not null") for i in range(len(types))]
    if not _is_safe(now, root, accesses, guards):
        return None
    for guard in list(guards):
        fewer = [other for other in guards if other != guard]
        if _is_safe(now, root, accesses, fewer):
            guards = fewer
    return guards


def _is_safe(now: Catalog, root: plan.Node, accesses: Sequence[Access], guards: Sequence[Guard]) -> bool:
    try:
        barriers(root, accesses, facts_of(now, root, guards))
    except Unsafe:
        return False
    return True


def sketch_query(
    now: Catalog,
    query: Query,
    choice: Choice,
    partitions: Mapping[Access, Partition],
    type_of: TypeOf,
) -> tuple[Query, Captured]:
    """The query whose answer is the sketch, and what the sketch is."""
    assert query.root is not None
    tables = {name: tuple(table.arrow.types) for name, table in now.tables.items()}
    accesses = tuple(Covered(number, column, partition) for (number, column), partition in partitions.items())
    asked = replace(query, analysed=None)
    captured = Captured(asked, accesses, choice.barriers, choice.guards, witnesses=choice.witnesses, tuning=choice.tuning)
    try:
        root = tuned(sketch_plan(captured, tables, type_of), choice.tuning)
    except Unsafe as reason:
        names = [scans_of(query.root)[number].source for number, _ in partitions]
        raise UnsafeSketch(names[0], [], reason.operator, reason.reason) from reason
    return Query(query.reading, _SCHEMA, query.sources, root), captured


def known_partition(now: Catalog, table: TableEntry, column: int, fragments: int | None) -> Partition | None:
    """The newest partition of a table by a column, unless one with about so many fragments is wanted and it has not."""
    require_count(fragments)
    name = table.arrow.names[column]
    found = [part for part in now.partitions if (part.table, part.column) == (table.name.lower(), name)]
    if not found or (fragments is not None and not fragments / 2 <= found[-1].count <= 2 * fragments):
        return None
    return found[-1]


def fragments_in(rows: pa.RecordBatch, captured: Captured) -> list[frozenset[int]] | None:
    """The fragments of each access, from the rows of a sketch; None if one of its guards is violated."""
    numbers, fragments = rows.column(0).to_pylist(), rows.column(1).to_pylist()
    if any(number < 0 for number in numbers):
        return None
    pairs = list(zip(numbers, fragments, strict=True))
    return [frozenset(f for n, f in pairs if n == number) for number in range(len(captured.accesses))]


def usable(now: Snapshot, root: plan.Node) -> list[str]:
    """The sketches, by name, that serve a query of this plan: captured for it, or for one of which it needs no more."""
    return [
        name
        for name, view in now.catalog.sketches.items()
        if view.sketch is not None
        and view.contents in now.states
        and serves(view.sketch, root, facts_of(now.catalog, root, view.sketch.guards))
    ]


def united_ones(now: Snapshot, root: plan.Node) -> tuple[str, ...]:
    """Sketches, by name, that serve a query of this plan only all together."""
    known = {name: view.sketch for name, view in now.catalog.sketches.items() if view.contents in now.states}
    sketches = {name: sketch for name, sketch in known.items() if sketch is not None}
    return united(sketches, root, lambda guards: facts_of(now.catalog, root, guards)) or ()


def are_safe_together(now: Catalog, root: plan.Node, sketches: Sequence[Captured]) -> bool:
    """Whether the ranges of several sketches, each of which serves the query, may be used at once."""
    accesses = {(covered.scan, covered.column) for sketch in sketches for covered in sketch.accesses}
    guards = [guard for sketch in sketches for guard in sketch.guards]
    try:
        walls = barriers(root, accesses, facts_of(now, root, guards))
    except Unsafe:
        return False
    return all(walls <= sketch.barriers for sketch in sketches)


def candidates(now: Catalog, root: plan.Node) -> list[Access]:
    """The accesses of tables by columns that can be cut into ranges."""
    found = []
    for number, scan in enumerate(scans_of(root)):
        table = now.tables.get(scan.source.lower())
        types = [] if table is None else table.arrow.types
        found += [(number, column) for column, kind in enumerate(types) if is_partitionable(kind)]
    return found


def safe_and_visible(now: Catalog, root: plan.Node, type_of: TypeOf) -> dict[Access, int]:
    """The accesses that are safe by themselves and whose attribute the answer shows, with the column that shows it."""
    shown: dict[Access, int] = {}
    for access in candidates(now, root):
        with suppress(Unsafe):
            if not barriers(root, [access], facts_of(now, root)):
                shown |= visible(root, [access], type_of)
    return shown


def has_one_row(node: plan.Node) -> bool:
    """Whether a node is not a scalar subquery that may give several rows, now or later."""
    if not isinstance(node, plan.Scalar):
        return True
    below = node.child
    while isinstance(below, plan.Project | plan.Filter | plan.Sort):
        below = below.child
    return (isinstance(below, plan.Aggregate) and not below.keys) or (isinstance(below, plan.Limit) and below.count in (0, 1))


def template_of(root: plan.Node) -> plan.Node:
    """The plan without the constants of its conditions and the number of its limits: what queries of one kind share."""
    node = plan.with_children(root, [template_of(child) for child in root.children])
    if isinstance(node, plan.Filter):
        condition = rewrite(node.condition, lambda part: replace(part, value="?") if isinstance(part, Literal) else None)
        return replace(node, condition=condition)
    return replace(node, count=0, offset=0) if isinstance(node, plan.Limit) else node
