"""The plan of a sketch: from the plan of a query to one whose rows are the fragments that the rows of its answer came from.

Every operator is kept as it is, with some columns more at the end of its rows. For each access that is sketched these say
where a row came from, in one of three ways:

    seen      a column has the value of the attribute, so the row came from the fragment of that value
    marked    a column has the fragment, or NULL: the row came from another branch of a union
    linked    some columns are a key of pairs (key, fragment): the row came from all fragments of its key

An aggregate by the attribute passes it on: the sketch can be read off the answer. Any other aggregate begins a link:

    γ G (R)   is linked by G to   π G, fragment (R)

At the end, rows are joined with their pairs, and of all that is found each fragment counts once. All of this is ordinary
algebra: what keeps views up to date keeps sketches up to date. Columns at the end do not disturb a limit, which breaks ties
by whole rows from left to right, and so looks at them only to choose between equal rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Expression, Literal, moved
from headwater.annotations.fragments import FRAGMENT, Partition
from headwater.compiler.joins import all_of, analyse
from headwater.sketches.facts import Unsafe
from headwater.sketches.witnesses import extremes, subjects, witnessed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from headwater.sketches.captured import Captured
    from headwater.sketches.facts import Access, Guard

    TypeOf = Callable[[Expression], pa.DataType]

_NUMBER = pa.int64()
_EXPLODING = ("Explode", "PosExplode", "Inline")


@dataclass(frozen=True)
class Link:
    """Columns of the rows, and pairs: their values with a fragment in the last column."""

    columns: tuple[int, ...]
    pairs: plan.Node

    def at(self, places: Mapping[int, int]) -> Link:
        """The same for rows that have the columns at other places."""
        return replace(self, columns=tuple(places[column] for column in self.columns))


@dataclass(frozen=True)
class Annotated:
    """An operator with more columns than the `width` it has itself, and where its rows came from."""

    node: plan.Node
    width: int
    seen: Mapping[Access, int] = field(default_factory=dict)
    marked: Mapping[Access, int] = field(default_factory=dict)
    links: Mapping[Access, Link] = field(default_factory=dict)

    @property
    def accesses(self) -> list[Access]:
        return [*self.seen, *self.marked, *self.links]

    @property
    def extra(self) -> list[int]:
        """The columns that say where rows came from."""
        linked = [column for link in self.links.values() for column in link.columns]
        return list(dict.fromkeys([*self.seen.values(), *self.marked.values(), *linked]))

    def over(self, node: plan.Node, places: Mapping[int, int], width: int) -> Annotated:
        """The same for a node above, which has the columns at other places."""
        seen = {access: places[column] for access, column in self.seen.items()}
        marked = {access: places[column] for access, column in self.marked.items()}
        return Annotated(node, width, seen, marked, {access: link.at(places) for access, link in self.links.items()})


def sketch_plan(sketch: Captured, tables: Mapping[str, plan.Types], type_of: TypeOf) -> plan.Node:
    """The relation of (number of an access, fragment); what violates guard i is there as (−1 − i, 0)."""
    assert sketch.query.root is not None
    order = [(covered.scan, covered.column) for covered in sketch.accesses]
    partitions = {access: covered.partition for access, covered in zip(order, sketch.accesses, strict=True)}
    capture = _Capture(partitions, sketch.barriers, type_of, sketch.witnesses)
    capture.finish(capture.annotated(sketch.query.root))
    found = [_numbered(order.index(access), node) for access, node in capture.found]
    found += [_violations(number, guard, tables[guard.table]) for number, guard in enumerate(sketch.guards)]
    types = (_NUMBER, FRAGMENT)
    every = plan.Union(types=types, inputs=tuple(found)) if len(found) > 1 else found[0]
    keys = (Column(0, _NUMBER), Column(1, FRAGMENT))
    return plan.Aggregate(types=types, child=every, keys=keys, outputs=keys)


def numbered(scan: plan.Scan) -> plan.Scan:
    """The scan of the same rows with the number of each after its columns; an access by that column is one by rows."""
    return replace(scan, types=(*scan.types, _NUMBER), source=f"{scan.source} (numbered)", origin=None)


def visible(root: plan.Node, accesses: Collection[Access], type_of: TypeOf) -> dict[Access, int]:
    """Those of the accesses whose attribute the answer shows, and the column that shows it."""
    nothing = Partition("", "", 0, pa.RecordBatch.from_arrays([pa.array([], _NUMBER)], names=["c0"]), ())
    found = _Capture(dict.fromkeys(accesses, nothing), frozenset(), type_of).annotated(root)
    return {access: column for access, column in found.seen.items() if column < found.width}


@dataclass
class _Capture:
    partitions: Mapping[Access, Partition]
    barriers: frozenset[int]
    type_of: TypeOf
    witnesses: bool = False
    found: list[tuple[Access, plan.Node]] = field(default_factory=list)
    nodes: int = 0
    scans: int = 0

    def annotated(self, node: plan.Node) -> Annotated:
        """The node with what its rows need to say where they came from."""
        is_barrier = self.nodes in self.barriers
        self.nodes += 1
        if isinstance(node, plan.Scan):
            number, self.scans = self.scans, self.scans + 1
            seen = {access: access[1] for access in self.partitions if access[0] == number}
            by_number = len(node.types) in seen.values()
            found = Annotated(numbered(node) if by_number else node, len(node.types), seen)
        else:
            children = [self.annotated(child) for child in node.children]
            found = self._above(node, children) if any(child.accesses for child in children) else _plain(node)
        if is_barrier:
            self.finish(found)
            return _plain(node)
        return found

    def finish(self, rows: Annotated) -> None:
        """All rows there are belong to the answer: notes where they came from."""
        for access, column in rows.seen.items():
            only = plan.picked(rows.node, [column])
            self.found.append((access, self._fragments(only, 0, access, ())))
        for access in (*rows.marked, *rows.links):
            self.found.append((access, self._pairs(rows, access, ())))

    def _fragments(self, node: plan.Node, column: int, access: Access, kept: Sequence[Expression]) -> plan.Node:
        """Some expressions over the rows of a node, then the fragment of a column."""
        types = tuple(self.type_of(part) for part in kept)
        marked = plan.Annotate(types=(*node.types, FRAGMENT), child=node, column=column, partition=self.partitions[access])
        columns = (*kept, Column(len(node.types), FRAGMENT))
        return plan.Project(types=(*types, FRAGMENT), child=marked, expressions=columns)

    def _above(self, node: plan.Node, children: list[Annotated]) -> Annotated:  # noqa: PLR0911  (one case a kind)
        match node:
            case plan.Project():
                return _project(node, children[0])
            case plan.Filter() | plan.Sort():
                child = children[0]
                return replace(child, node=replace(node, types=child.node.types, child=child.node))
            case plan.Limit():
                child = children[0]
                count = None if node.count is None else node.count + node.offset
                limited = replace(node, types=child.node.types, child=child.node, count=count, offset=0)
                return replace(child, node=limited)
            case plan.Expand():
                return _expand(node, children[0])
            case plan.Generate():
                return _generate(node, children[0])
            case plan.Window():
                return _window(node, children[0])
            case plan.Union():
                return _union(node, [self._marked(child) for child in children])
            case plan.Join():
                return self._join(node, *children)
            case plan.Aggregate():
                return self._aggregate(node, children[0])
        raise Unsafe(type(node).__name__, "there is no rule for where its rows came from")

    def _join(self, node: plan.Join, left: Annotated, right: Annotated) -> Annotated:
        wide, one_sided = len(left.node.types), node.kind in ("semi", "anti", "existence")
        inner = {i: i for i in range(left.width)} | {left.width + i: wide + i for i in range(right.width)}
        condition = None if node.condition is None else moved(node.condition, inner)
        types = left.node.types if one_sided else left.node.types + right.node.types
        types += (pa.bool_(),) if node.kind == "existence" else ()
        joined = replace(node, types=types, left=left.node, right=right.node, condition=condition)
        shown = [*range(left.width), *((wide + i for i in range(right.width)) if not one_sided else ())]
        shown += [wide] if node.kind == "existence" else []
        beside = right.over(joined, {i: wide + i for i in range(len(right.node.types))}, 0)
        both = replace(left, node=joined)
        if not one_sided:
            both = Annotated(
                joined, 0, {**left.seen, **beside.seen}, {**left.marked, **beside.marked}, {**left.links, **beside.links}
            )
        extra = [column for column in both.extra if column not in shown]
        places = {column: i for i, column in enumerate([*shown, *extra])}
        found = both.over(plan.picked(joined, [*shown, *extra]), places, len(shown))
        return self._semi(node, found, right) if node.kind == "semi" and right.accesses else found

    def _semi(self, node: plan.Join, found: Annotated, right: Annotated) -> Annotated:
        """A row with partners came from all fragments of rows with its key on the other side."""
        condition = analyse(node)
        types = tuple(self.type_of(part) for part in condition.left)
        outputs = (*_columns(found.node.types), *condition.left)
        keyed = plan.Project(types=found.node.types + types, child=found.node, expressions=outputs)
        keys = tuple(range(len(found.node.types), len(outputs)))
        links = {access: Link(keys, self._pairs(right, access, condition.right)) for access in right.accesses}
        return replace(found, node=keyed, links={**found.links, **links})

    def _marked(self, rows: Annotated) -> Annotated:
        """Rows with the fragment in place of the attribute."""
        node, marked = rows.node, dict(rows.marked)
        for access, column in rows.seen.items():
            marked[access] = len(node.types)
            types = (*node.types, FRAGMENT)
            node = plan.Annotate(types=types, child=node, column=column, partition=self.partitions[access])
        return replace(rows, node=node, seen={}, marked=marked)

    def _pairs(self, rows: Annotated, access: Access, keys: Sequence[Expression]) -> plan.Node:
        """Values of the keys with the fragments of the rows that have them."""
        if access in rows.seen:
            return self._fragments(rows.node, rows.seen[access], access, keys)
        if access in rows.marked:
            fragment = Column(rows.marked[access], FRAGMENT)
            there = Call("IsNotNull", (fragment,))
            found: plan.Node = plan.Filter(types=rows.node.types, child=rows.node, condition=there)
        else:
            found = _linked(rows.node, rows.links[access])
            fragment = Column(len(found.types) - 1, FRAGMENT)
        types = (*(self.type_of(part) for part in keys), FRAGMENT)
        return plan.Project(types=types, child=found, expressions=(*keys, fragment))

    def _of_group(self, node: plan.Aggregate, child: Annotated, access: Access) -> plan.Node:
        """The keys of groups with the fragments that they need."""
        calls = extremes(node) if self.witnesses else []
        if not calls:
            return self._pairs(child, access, node.keys)
        pairs = self._pairs(child, access, [*node.keys, *subjects(calls)])
        return witnessed(child.node, pairs, node, calls, self.type_of)

    def _aggregate(self, node: plan.Aggregate, child: Annotated) -> Annotated:
        keys = list(node.keys)
        missing = [key for key in dict.fromkeys(keys) if key not in node.outputs]
        outputs = (*node.outputs, *missing)
        types = node.types + tuple(self.type_of(key) for key in missing)
        grouped = replace(node, types=types, child=child.node, outputs=outputs)
        places = {part.index: outputs.index(part) for part in keys if isinstance(part, Column)}
        by_keys = tuple(outputs.index(key) for key in keys)
        seen, links = {}, {}
        for access in child.accesses:
            if access in child.seen and child.seen[access] in places:
                seen[access] = places[child.seen[access]]
            elif access in child.links and all(column in places for column in child.links[access].columns):
                links[access] = child.links[access].at(places)
            else:
                links[access] = Link(by_keys, self._of_group(node, child, access))
        return Annotated(grouped, len(node.types), seen, {}, links)


def _plain(node: plan.Node) -> Annotated:
    return Annotated(node, len(node.types))


def _columns(types: Sequence[pa.DataType]) -> list[Expression]:
    return [Column(i, kind) for i, kind in enumerate(types)]


def _linked(rows: plan.Node, link: Link) -> plan.Node:
    """Rows with each of their fragments in the last column."""
    width = len(rows.types)
    equal = [
        Call("EqualNullSafe", (Column(column, rows.types[column]), Column(width + i, rows.types[column])))
        for i, column in enumerate(link.columns)
    ]
    types = rows.types + link.pairs.types
    joined = plan.Join(types=types, left=rows, right=link.pairs, kind="inner", condition=all_of(list(equal)))
    return plan.picked(joined, [*range(width), len(types) - 1])


def _numbered(number: int, fragments: plan.Node) -> plan.Node:
    outputs = (Literal(str(number), _NUMBER), Column(0, FRAGMENT))
    return plan.Project(types=(_NUMBER, FRAGMENT), child=fragments, expressions=outputs)


def _violations(number: int, guard: Guard, types: plan.Types) -> plan.Node:
    """The rows of a table for which a guard does not hold."""
    column = Column(guard.column, types[guard.column])
    zero = Literal("0", column.type)
    conditions = {
        "≥ 0": Call("LessThan", (column, zero)),
        "≤ 0": Call("GreaterThan", (column, zero)),
        "not null": Call("IsNull", (column,)),
    }
    scan = plan.Scan(types=types, source=guard.table)
    found = plan.Filter(types=types, child=scan, condition=conditions[guard.kind])
    outputs = (Literal(str(-1 - number), _NUMBER), Literal("0", FRAGMENT))
    return plan.Project(types=(_NUMBER, FRAGMENT), child=found, expressions=outputs)


def _project(node: plan.Project, child: Annotated) -> Annotated:
    """The columns that say where rows came from are passed on, unless they are shown anyway."""
    shown = {part.index: i for i, part in reversed(list(enumerate(node.expressions))) if isinstance(part, Column)}
    extra = [column for column in child.extra if column not in shown]
    outputs = (*node.expressions, *(Column(column, child.node.types[column]) for column in extra))
    types = node.types + tuple(child.node.types[column] for column in extra)
    places = {**shown, **{column: len(node.expressions) + i for i, column in enumerate(extra)}}
    projected = replace(node, types=types, child=child.node, expressions=outputs)
    return child.over(projected, places, len(node.types))


def _expand(node: plan.Expand, child: Annotated) -> Annotated:
    extra = child.extra
    types = node.types + tuple(child.node.types[column] for column in extra)
    more = tuple(Column(column, child.node.types[column]) for column in extra)
    projections = tuple((*row, *more) for row in node.projections)
    expanded = replace(node, types=types, child=child.node, projections=projections)
    return child.over(expanded, {column: len(node.types) + i for i, column in enumerate(extra)}, len(node.types))


def _generate(node: plan.Generate, child: Annotated) -> Annotated:
    if node.generator.function not in _EXPLODING:
        raise Unsafe("Generate", f"where the rows of {node.generator.function.lower()} came from cannot be told")
    kept, made = len(node.kept), len(node.types) - len(node.kept)
    extra = child.extra
    types = (*node.types[:kept], *(child.node.types[i] for i in extra), *node.types[kept:])
    generated = replace(node, types=types, child=child.node, kept=(*node.kept, *extra))
    order = [*range(kept), *range(kept + len(extra), kept + len(extra) + made), *range(kept, kept + len(extra))]
    places = {column: len(node.types) + i for i, column in enumerate(extra)}
    return child.over(plan.picked(generated, order), places, len(node.types))


def _window(node: plan.Window, child: Annotated) -> Annotated:
    """It is partitioned by the attributes, so whatever else its partition has is in the fragments of the row itself."""
    if any(column >= child.width for column in child.extra):
        # Its functions are Spark's, which takes rows as they are.
        raise Unsafe("Window", "its rows do not show the columns by which tables are sketched")
    return replace(child, node=replace(node, child=child.node), width=len(node.types))


def _union(node: plan.Union, children: list[Annotated]) -> Annotated:
    """Each access is in one branch: the others have NULL in its columns, and links have the branch's number in their key."""
    tag = len(node.types)
    types = [*node.types, _NUMBER]
    outputs = [[*_columns(node.types), Literal(str(number), _NUMBER)] for number in range(len(children))]
    marked: dict[Access, int] = {}
    links: dict[Access, Link] = {}
    for number, child in enumerate(children):
        places = {column: len(types) + i for i, column in enumerate(child.extra)}
        for column in child.extra:
            kind = child.node.types[column]
            types.append(kind)
            for other, row in enumerate(outputs):
                row.append(Column(column, kind) if other == number else Literal(None, kind))
        marked |= {access: places[column] for access, column in child.marked.items()}
        links |= {access: _tagged(link.at(places), number, tag) for access, link in child.links.items()}
    inputs = tuple(
        plan.Project(types=tuple(types), child=child.node, expressions=tuple(row))
        for child, row in zip(children, outputs, strict=True)
    )
    return Annotated(replace(node, types=tuple(types), inputs=inputs), tag, {}, marked, links)


def _tagged(link: Link, number: int, tag: int) -> Link:
    outputs = (Literal(str(number), _NUMBER), *_columns(link.pairs.types))
    pairs = plan.Project(types=(_NUMBER, *link.pairs.types), child=link.pairs, expressions=outputs)
    return Link((tag, *link.columns), pairs)
