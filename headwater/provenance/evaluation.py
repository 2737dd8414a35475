"""Goal-directed evaluation: the rows of a node that are asked for, each with what it follows from.

    select       keeps
    join         all of both                     semi join   the row, and any of its partners
    union, projection, distinct    any           anti join   the row, and the absence of partners
    aggregate    all rows of the group; for MIN and MAX any row that has the value
    window       all rows of the partition       top-k       the row, and those that an offset skips
    fixpoint     facts, which follow from facts: asked for goal by goal, until no goal and no row is new

Goals go down, rows come up. A base row is looked up in an arrangement of its table by the columns that the goal knows; the rest
of the table is not touched. What is computed is computed by the engine's own operators, over the few rows found.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.algebra import plan
from headwater.algebra.expressions import Column
from headwater.compiler import joins
from headwater.compiler.linear import is_linear
from headwater.compiler.recipes import Mask
from headwater.compiler.strategies import as_joins
from headwater.delta import Delta, beside
from headwater.errors import NotExplained
from headwater.evaluation.stages import typed
from headwater.picking import picked
from headwater.provenance import kept, linear, whole
from headwater.provenance.annotated import Annotated
from headwater.provenance.derivations import TRUE, tuples
from headwater.provenance.fixpoint import Frame, solved
from headwater.provenance.goals import Goal, pairs, pairs_in_slices
from headwater.provenance.naming import label_of, names_of
from headwater.runtime.catalog import TableEntry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.algebra.expressions import Expression
    from headwater.compiler.linear import Engines
    from headwater.provenance.derivations import Builder
    from headwater.runtime.catalog import Snapshot, ViewEntry


@dataclass(eq=False)
class Visit:
    """One node that was asked for a goal: what it found, and what of that was asked for."""

    node: plan.Node
    goal: Goal
    children: list[Visit] = field(default_factory=list)
    before: pa.RecordBatch | None = None
    kept: pa.RecordBatch | None = None

    @property
    def found(self) -> int:
        return 0 if self.kept is None else self.kept.num_rows


class Evaluator:
    """Evaluates plans over a snapshot."""

    def __init__(self, snapshot: Snapshot, engines: Engines, builder: Builder) -> None:
        self.snapshot = snapshot
        self.engines = engines
        self.builder = builder
        self.frames: list[Frame] = []
        self.visit = Visit(plan.Node(types=()), Goal.everything())
        self.certain: plan.Node | None = None
        """A limit at the top of the plan, all of whose rows that are asked for are known to be within it."""
        self.reads_annotations = True
        """Whether rows are explained by annotations that are kept; who asks what is missing wants all steps."""
        self._counts = False
        """Whether it matters how often a row is there, as it does below what counts or sums."""

    def view(self, view: ViewEntry, goal: Goal) -> Annotated:
        """The rows of a view that are asked for."""
        root = view.query.root
        if root is None:
            raise NotExplained(
                f"view {view.name!r} is evaluated by Spark alone, because the query has {view.query.unreadable}: "
                "nothing is known of where its rows come from"
            )
        frames, self.frames = self.frames, []
        try:
            return self.evaluate(root, goal)
        finally:
            self.frames = frames

    def evaluate(self, node: plan.Node, goal: Goal) -> Annotated:
        """The rows of the node that the goal asks for."""
        above, self.visit = self.visit, Visit(node, goal)
        above.children.append(self.visit)
        try:
            found = self._evaluate(node, goal)
            self.visit.before = found.rows
            wanted = found.take(goal.among(found.rows)) if goal.columns else found
            self.visit.kept = wanted.rows
            return wanted
        finally:
            self.visit = above

    def _evaluate(self, node: plan.Node, goal: Goal) -> Annotated:  # noqa: C901, PLR0911, PLR0912  (one case a kind)
        if is_linear(node):
            return linear.evaluated(self, node, goal)
        match node:
            case plan.Scan():
                return self._scan(node, goal)
            case plan.Values(rows=rows):
                return Annotated(rows, np.full(rows.num_rows, TRUE))
            case plan.Union():
                parts = [self.evaluate(child, goal) for child in node.inputs]
                return Annotated.concat([replace(p, rows=typed(p.rows.columns, node.types, len(p))) for p in parts])
            case plan.Join():
                return self._join(node, goal)
            case plan.MultiJoin():
                return self.evaluate(as_joins(node), goal)
            case plan.Aggregate():
                with self._counting(matters=True):
                    return whole.aggregate(self, node, goal)
            case plan.Window():
                with self._counting(matters=True):
                    return whole.window(self, node, goal)
            case plan.Sort():
                return self.evaluate(node.child, goal)
            case plan.Limit():
                with self._counting(matters=True):
                    return whole.limit(self, node, goal)
            case plan.Scalar():
                return whole.scalar(self, node)
            case plan.Fixpoint():
                with self._counting(matters=False):
                    return solved(self, node, goal)
            case plan.Explained():
                kept_ones = kept.found(self, node.annotation, goal) if self.reads_annotations else None
                return self.evaluate(node.child, goal) if kept_ones is None else kept_ones
            case plan.Recursive(relation=relation):
                return self.frames[-1].facts(relation, goal)
        raise NotExplained(f"{label_of(node)} is evaluated by Spark alone: nothing is known of where its rows come from")

    def _scan(self, node: plan.Scan, goal: Goal) -> Annotated:
        entry = self.snapshot.entries[node.source.lower()]
        if not isinstance(entry, TableEntry):
            return self.view(entry, goal)
        rows = self._rows(entry, goal)
        values = tuples(rows.columns, rows.num_rows)
        return Annotated(rows, np.array([self.builder.base(entry.name, row) for row in values], np.int64))

    @contextmanager
    def _counting(self, *, matters: bool) -> Iterator[None]:
        above, self._counts = self._counts, matters
        try:
            yield
        finally:
            self._counts = above

    def _rows(self, table: TableEntry, goal: Goal) -> pa.RecordBatch:
        """The rows of a table that are asked for, each once, or as often as it is there where that matters.

        They are found by an arrangement whose key the goal knows, if there is one.
        """
        kept, states, steps = [self.snapshot.kept(table)], self.snapshot.states, self.snapshot.catalog.steps
        kept += [states[step][0] for step in steps if table.source in step.inputs and states.get(step)]
        usable = [rows for rows in kept if rows.key and set(rows.key) <= set(goal.columns) and rows.width is None]
        if not usable:
            everything = kept[0].contents()
            return self._copies(everything.take(goal.among(everything.rows)))
        index = max(usable, key=lambda rows: len(rows.key))
        keys = goal.values.select([goal.columns.index(column) for column in index.key])
        distinct = Goal.of(range(len(index.key)), keys.columns, keys.num_rows).values
        found = index.lookup(distinct, range(len(index.key))).consolidated()
        return self._copies(Delta(found.rows, found.weights))

    def _copies(self, found: Delta) -> pa.RecordBatch:
        return found.take(np.repeat(np.arange(len(found)), found.weights)).rows if self._counts else found.rows

    # -- joins

    def _join(self, node: plan.Join, goal: Goal) -> Annotated:
        if node.kind in ("left", "right", "full", "single"):
            return self.evaluate(joins.expand_outer(replace(node, kind="left") if node.kind == "single" else node), goal)
        if node.kind == "inner":
            return self._inner(node, goal)
        left = self.evaluate(node.left, goal.through({i: i for i in range(len(node.left.types))}))
        condition = joins.analyse(node)
        keys = self._values(condition.left, left.rows)
        right = self.evaluate(node.right, _First(left.rows, keys, goal).asks(condition.right))
        met, partners = self._pairs(node, left, right)
        return self._matched(node, left, right, met, partners)

    def _inner(self, node: plan.Join, goal: Goal) -> Annotated:
        """The side of which the goal knows more goes first, and says which rows of the other are needed."""
        width = len(node.left.types)
        places = ({i: i for i in range(width)}, {i: i - width for i in range(width, len(node.types))})
        goals = [goal.through(side) for side in places]
        children, condition = node.children, joins.analyse(node)
        keys = (condition.left, condition.right)
        recursive = [any(isinstance(part, plan.Recursive) for part in plan.walk(child)) for child in children]
        first = min((0, 1), key=lambda side: (not goals[side].columns, recursive[side], -len(goals[side].columns)))
        second = 1 - first
        sides: dict[int, Annotated] = {first: self.evaluate(children[first], goals[first])}
        values = self._values(keys[first], sides[first].rows)
        ours, theirs = ([(side[c], c) for c in goal.columns if c in side] for side in (places[first], places[second]))
        sides[second] = self.evaluate(
            children[second], _First(sides[first].rows, values, goal, ours, theirs).asks(keys[second])
        )
        left, right = sides[0], sides[1]
        met, partners = self._pairs(node, left, right)
        rows = beside([*picked(left.rows.columns, met), *picked(right.rows.columns, partners)], len(met))
        why = [self.builder.all(pair) for pair in zip(left.why[met].tolist(), right.why[partners].tolist(), strict=True)]
        return Annotated(rows, np.array(why, np.int64))

    def _pairs(self, node: plan.Join, left: Annotated, right: Annotated) -> tuple[np.ndarray, np.ndarray]:
        """The pairs that meet the condition."""
        condition = joins.analyse(node)
        ours, theirs = self._values(condition.left, left.rows), self._values(condition.right, right.rows)
        every = range(len(condition.left))
        known = np.ones(len(left), bool)
        for column, safe in zip(ours.columns, condition.null_safe, strict=True):
            if not safe and column.null_count:
                known &= column.is_valid().to_numpy(zero_copy_only=False)
        fits = None if condition.rest is None else Mask(condition.rest, self.engines)
        found = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        for left_rows, right_rows in pairs_in_slices(ours, every, theirs, every):
            met, partners = left_rows[known[left_rows]], right_rows[known[left_rows]]
            if fits is not None and len(met):
                both = beside([*picked(left.rows.columns, met), *picked(right.rows.columns, partners)], len(met))
                fitting = fits(both)
                met, partners = met[fitting], partners[fitting]
            found.append((met, partners))
        return np.concatenate([met for met, _ in found]), np.concatenate([partners for _, partners in found])

    def _matched(self, node: plan.Join, left: Annotated, right: Annotated, met: np.ndarray, partners: np.ndarray) -> Annotated:
        """Semi, anti and existence joins: a left row and any partner, or the absence of partners."""
        found: dict[int, list[int]] = {}
        for row, partner in zip(met.tolist(), right.why[partners].tolist(), strict=True):
            found.setdefault(row, []).append(partner)
        matched = np.isin(np.arange(len(left)), met)
        why = np.array([self._with_partners(node, left, row, found.get(row)) for row in range(len(left))], np.int64)
        if node.kind == "existence":
            return Annotated(beside([*left.rows.columns, pa.array(matched)], len(left)), why)
        return Annotated(left.rows, why).take(np.flatnonzero(matched if node.kind == "semi" else ~matched))

    def _with_partners(self, node: plan.Join, left: Annotated, row: int, partners: list[int] | None) -> int:
        own = int(left.why[row])
        if partners is not None:
            return self.builder.all((own, self.builder.any(partners)))
        names = names_of(node.left, self.snapshot.entries)
        known = {column.index for column in joins.analyse(node).left if isinstance(column, Column)} or range(len(names))
        values = ", ".join(f"{names[i]} = {left.rows.column(i)[row].as_py()!r}" for i in sorted(known))
        tables = sorted({part.source for part in plan.walk(node.right) if isinstance(part, plan.Scan)})
        text = f"no partner in {', '.join(tables) or 'the other side'} for {values}"
        return self.builder.all((own, self.builder.absence(text)))

    def _values(self, expressions: Sequence[Expression], rows: pa.RecordBatch) -> pa.RecordBatch:
        """The values of expressions for rows, one by one."""
        if all(isinstance(part, Column) for part in expressions):
            return beside([rows.column(part.index) for part in expressions if isinstance(part, Column)], rows.num_rows)
        types = tuple(self.engines.type_of(part) for part in expressions)
        node = plan.Project(types=types, child=plan.Node(types=tuple(rows.schema.types)), expressions=tuple(expressions))
        numbered = linear.run(self, node, Delta(rows, np.arange(rows.num_rows)))
        return numbered.take(np.argsort(numbered.weights)).rows


@dataclass(frozen=True, eq=False)
class _First:
    """The rows of the side of a join that went first, their keys, and the goal of the join.

    `ours` and `theirs` are columns of this side and of the other, each with the column of the goal that it is.
    """

    rows: pa.RecordBatch
    keys: pa.RecordBatch
    goal: Goal
    ours: Sequence[tuple[int, int]] = ()
    theirs: Sequence[tuple[int, int]] = ()

    def asks(self, keys: Sequence[Expression]) -> Goal:
        """What is asked of the other side: these keys, beside what the goal asks of it itself."""
        plain = [(i, key.index) for i, key in enumerate(keys) if isinstance(key, Column)]
        if not self.theirs:
            return Goal.of([column for _, column in plain], [self.keys.column(i) for i, _ in plain], self.keys.num_rows)
        known, places = self.goal.values, {column: place for place, column in enumerate(self.goal.columns)}
        row, wanted = pairs(self.rows, [column for column, _ in self.ours], known, [places[c] for _, c in self.ours])
        arrays = picked([self.keys.column(i) for i, _ in plain], row)
        arrays += picked([known.column(places[column]) for _, column in self.theirs], wanted)
        return Goal.of([*(column for _, column in plain), *(column for column, _ in self.theirs)], arrays, len(row))
