"""What can be asked of a view about one row: why it is there, why it is not, and what depends on a row of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwater.algebra import plan
from headwater.algebra.expressions import Column
from headwater.compiler.dataflow import in_order
from headwater.delta import Delta
from headwater.errors import MissingRow, NotExplained
from headwater.provenance.derivations import Builder, tuples
from headwater.provenance.evaluation import Evaluator
from headwater.provenance.goals import Goal
from headwater.provenance.why import Why
from headwater.provenance.why_not import WhyNot, missing
from headwater.runtime.driver import run_epoch
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater.compiler.linear import Engines
    from headwater.provenance.derivations import Row
    from headwater.runtime.catalog import Snapshot, TableEntry, ViewEntry


def why(snapshot: Snapshot, engines: Engines, view: ViewEntry, row: pa.RecordBatch) -> Why:
    """What a row of a view follows from."""
    (shown,) = tuples(row.columns, 1)
    if not _copies(snapshot, view, row):
        raise NotExplained(f"view {view.name!r} has no row {shown!r} at epoch {snapshot.epoch}; why_not(row) says why")
    builder = Builder()
    evaluator = Evaluator(snapshot, engines, builder)
    evaluator.certain = _top_limit(view.query.root)
    found = evaluator.view(view, Goal.of(range(row.num_columns), row.columns, 1))
    if not len(found):
        raise NotExplained(f"the derivation of the row {shown!r} of view {view.name!r} was not found; please report this query")
    columns = {entry.name: list(entry.arrow.names) for entry in snapshot.tables.values()}
    return Why(view.name, snapshot.epoch, shown, builder.derivation(builder.any(found.why.tolist())), columns)


def why_not(snapshot: Snapshot, engines: Engines, view: ViewEntry, row: pa.RecordBatch) -> WhyNot:
    """Where the candidates for a row end that a view does not have."""
    (shown,) = tuples(row.columns, 1)
    if _copies(snapshot, view, row):
        raise NotExplained(f"view {view.name!r} has the row {shown!r} at epoch {snapshot.epoch}; why(row) says why")
    evaluator = Evaluator(snapshot, engines, Builder())
    evaluator.reads_annotations = False
    evaluator.view(view, Goal.of(range(row.num_columns), row.columns, 1))
    return WhyNot(view.name, snapshot.epoch, shown, missing(evaluator.visit.children[0], snapshot.entries))


def depends_on(snapshot: Snapshot, view: ViewEntry, table: TableEntry, row: pa.RecordBatch) -> list[Row]:
    """The rows of a view that would not be there without a row of a table: an epoch that is computed and forgotten."""
    copies = int(snapshot.kept(table).weights_of(row)[0])
    if not copies:
        raise MissingRow(f"table {table.name!r} has no row {tuples(row.columns, 1)[0]!r}")
    changes = {table.source: Delta(row, np.array([-copies]))}
    steps = in_order([view.contents])
    # What is kept beside rows does not change them, and would go on with an epoch that never was.
    aside = {step.inputs[i] for step in steps for i in step.operator.annotating}
    outcome = run_epoch([step for step in steps if step not in aside], snapshot.states, changes)
    changed = outcome.outputs.get(view.kept)
    if changed is None:
        return []
    width = len(view.arrow)
    gone = consolidate(changed.select(range(width)))
    gone = gone.where(gone.weights < 0)
    if not len(gone):
        return []
    kept = gone.where(_counts(snapshot, view, gone.rows) + gone.weights == 0)
    return tuples(kept.rows.columns, len(kept))


def _copies(snapshot: Snapshot, view: ViewEntry, row: pa.RecordBatch) -> int:
    return int(_counts(snapshot, view, row)[0])


def _counts(snapshot: Snapshot, view: ViewEntry, rows: pa.RecordBatch) -> np.ndarray:
    """How often a view has each of the rows."""
    kept = snapshot.kept(view)
    if len(kept.schema) == len(view.arrow):
        return kept.weights_of(rows)
    from headwater.state.arrangement import Arrangement

    shown = kept.contents().select(range(len(view.arrow)))
    return Arrangement.empty(shown.schema, range(len(view.arrow))).insert(shown).weights_of(rows)


def _top_limit(root: plan.Node | None) -> plan.Node | None:
    """The limit that all rows of a plan come from as they are: a row of the answer is a row of it."""
    node = root
    while isinstance(node, plan.Sort | plan.Explained) or (isinstance(node, plan.Project) and _passes_all(node)):
        node = node.child
    return node if isinstance(node, plan.Limit) and not node.offset else None


def _passes_all(node: plan.Project) -> bool:
    passed = {part.index for part in node.expressions if isinstance(part, Column)}
    return passed == set(range(len(node.child.types)))
