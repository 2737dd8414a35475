"""Sketches as the engine keeps them: after every change they are the fragments that the rows of the answer came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StructField, StructType
from small_plans import INT, Naive, bag
from test_safety import WIDTHS, cases, numbered, widened

from headwater.algebra import plan
from headwater.algebra.origin import Reading
from headwater.annotations.fragments import Partition
from headwater.compiler.compiler import Compiler
from headwater.compiler.linear import Engines
from headwater.definitions import Definitions
from headwater.delta import Delta
from headwater.evaluation.duckdb_sql import Connection
from headwater.evaluation.spark import SparkEvaluator
from headwater.frontend.catalyst import Query
from headwater.runtime.epochs import Epochs
from headwater.sketches.capture import sketch_plan
from headwater.sketches.captured import Captured, Covered
from headwater.sketches.facts import Facts, Unsafe
from headwater.sketches.safety import barriers
from headwater.sketches.tuning import Tuning, tuned
from headwater.skipping.sketching import fragments_in

if TYPE_CHECKING:
    Row = tuple[Any, ...]
    Access = tuple[int, int]

NOT_NEEDED: Any = None
ENGINES = Engines(Connection("UTC"), SparkEvaluator(NOT_NEEDED))
DEFINITIONS = Definitions(Compiler(ENGINES), NOT_NEEDED)
SCHEMA = StructType([StructField("access", LongType()), StructField("fragment", LongType())])


def partition(table: str, column: int) -> Partition:
    bounds = pa.RecordBatch.from_arrays([pa.array([0, 2], INT)], names=["c0"])
    return Partition(table, f"c{column}", 1, bounds, (1, 1, 1, 1))


def delta(rows: list[Row], width: int, weight: int) -> Delta:
    columns = [pa.array([row[i] for row in rows], INT) for i in range(width)]
    batch = pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(width)])
    found = Delta.inserting(batch)
    return found if weight > 0 else -found


def expected(root: plan.Node, rows: dict[str, list[Row]], sketch: Captured) -> list[frozenset[int]]:
    """The fragments of everything that the answer came from, and everything behind barriers."""
    whole = numbered(root, rows)
    naive = Naive(whole, witnesses=sketch.witnesses)
    needed = {pair for _, lineage in naive.rows(widened(root)) for pair in lineage}
    needed |= {pair for wall in sketch.barriers for _, lineage in naive.seen[wall] for pair in lineage}
    found = []
    for covered in sketch.accesses:
        values = [row[covered.column] for i, row in whole[covered.scan] if (covered.scan, i) in needed]
        found.append(frozenset(covered.partition.fragments(pa.array(values, INT)).tolist()))
    return found


def over(root: plan.Node, rows: dict[str, list[Row]], sketch: Captured, fragments: list[frozenset[int]]) -> Any:
    part = numbered(root, rows)
    for covered, chosen in zip(sketch.accesses, fragments, strict=True):
        column = [row[covered.column] for _, row in part[covered.scan]]
        kept = covered.partition.fragments(pa.array(column, INT)).tolist()
        part[covered.scan] = [pair for pair, f in zip(part[covered.scan], kept, strict=True) if f in chosen]
    return bag(Naive(part).rows(root))


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(
    case=cases(),
    more=st.lists(st.tuples(*[st.integers(-2, 4)] * 4), max_size=4),
    data=st.data(),
    witnesses=st.booleans(),
    tuning=st.builds(Tuning, st.booleans(), st.booleans(), st.sampled_from([None, 1, 2])),
)
def test_sketches_follow_every_change(
    case: tuple[plan.Node, dict[str, list[Row]], list[Access], Facts],
    more: list[Row],
    data: st.DataObject,
    *,
    witnesses: bool,
    tuning: Tuning,
) -> None:
    """However they are maintained."""
    root, rows, accesses, facts = case
    try:
        walls = barriers(root, accesses, facts)
    except Unsafe:
        return
    names = [node.source for node in plan.walk(root) if isinstance(node, plan.Scan)]
    query = Query(Reading(None, (), "UTC", None), SCHEMA, frozenset(names), root)
    sketch = Captured(query, tuple(Covered(n, c, partition(names[n], c)) for n, c in accesses), walls, (), witnesses=witnesses)
    types = {name: (INT,) * width for name, width in WIDTHS.items()}
    made = Query(query.reading, SCHEMA, query.sources, tuned(sketch_plan(sketch, types, ENGINES.type_of), tuning))
    epochs = Epochs()
    for name, width in WIDTHS.items():
        columns = StructType([StructField(f"c{i}", LongType()) for i in range(width)])
        epochs.define(DEFINITIONS.table(epochs.now.catalog, name, columns, None).catalog)
        epochs.commit({name: delta(rows[name], width, 1)}, {})
    defined = DEFINITIONS.view(epochs.now, "k", made, "auto", sketch)
    epochs.define(defined.catalog, defined.rebuilt)
    has_limit = any(isinstance(node, plan.Limit) for node in plan.walk(root))
    gone = data.draw(st.lists(st.sampled_from(rows["r"]), unique_by=id, max_size=3)) if rows["r"] else []
    now = {name: list(each) for name, each in rows.items()}
    for step in range(3):
        found = fragments_in(epochs.now.contents(epochs.now.views["k"]).rows, sketch)
        assert found is not None
        assert over(root, now, sketch, found) == bag(Naive(numbered(root, now)).rows(root))
        if not has_limit:
            assert found == expected(root, now, sketch)
        if step == 0:
            epochs.commit({"r": delta(more, 4, 1)}, {})
            now["r"] += more
        elif step == 1:
            epochs.commit({"r": delta(gone, 4, -1)}, {})
            for row in gone:
                now["r"].remove(row)
