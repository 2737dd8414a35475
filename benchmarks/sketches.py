"""Sketches: what skipping saves, what maintenance costs beside capturing anew, and both in mixes of updates and queries.

The table is in Parquet files clustered on the attribute, and attached. Captured anew means the cheapest way there is for Spark:
the fragments of the rows of qualifying groups, of a table in its cache, where a fragment is a multiplication and a division.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data import Changing, facts, partners
from benchmarks.measuring import Recompute, commits, connected, load, note, require_equal, seconds
from benchmarks.workload import Figure, Scale, Workload

if TYPE_CHECKING:
    from pathlib import Path

    import headwater as hw

FRAGMENTS = 1_000
_FILES = 16
_GROUPS = 5_000


@dataclass(frozen=True)
class Query:
    """A query of which a sketch is made; `:n` is a fiftieth of the groups; `keys` gives the groups that are in the answer."""

    name: str
    kind: str
    text: str
    keys: str
    has_partners: bool = False

    def at(self, groups: int, text: str) -> str:
        return text.replace(":n", str(max(1, groups // 50)))


QUERIES = (
    Query(
        "having",
        "aggregate",
        "SELECT a, avg(b) AS ab FROM r GROUP BY a HAVING avg(c) < :n",
        "SELECT a FROM r GROUP BY a HAVING avg(c) < :n",
    ),
    Query(
        "top 10 groups",
        "top-k",
        "SELECT a, sum(b) AS sb FROM r GROUP BY a ORDER BY sb DESC, a LIMIT 10",
        "SELECT a FROM (SELECT a, sum(b) AS sb FROM r GROUP BY a ORDER BY sb DESC, a LIMIT 10)",
    ),
    Query(
        "join",
        "join",
        "SELECT a, avg(b) AS ab FROM r JOIN s ON a = ttid GROUP BY a HAVING avg(c) < :n",
        "SELECT a FROM r JOIN s ON a = ttid GROUP BY a HAVING avg(c) < :n",
        has_partners=True,
    ),
)
MIXES = {"1U1Q": (1, 1), "1U5Q": (1, 5), "5U1Q": (5, 1)}


def groups_at(scale: Scale) -> int:
    return min(_GROUPS, scale.rows)


def clustered(rows: pa.Table, directory: Path) -> Path:
    """The rows in order of the attribute, as files with some row groups each."""
    place = directory / f"clustered-{rows.num_rows}"
    if not place.exists():
        place.mkdir()
        ordered = rows.sort_by("a")
        size = -(-rows.num_rows // _FILES)
        for part in range(_FILES):
            piece = ordered.slice(part * size, size)
            pq.write_table(piece, place / f"{part:02}.parquet", row_group_size=max(1_000, size // 16))
    return place


def attached(session: hw.Session, query: Query, scale: Scale) -> tuple[Changing, str]:
    """The table, attached, and what it is joined with; the query over them."""
    groups = groups_at(scale)
    table = Changing.of(facts(groups), scale.rows)
    session.create_table("r", source=clustered(table.base, scale.directory))
    if query.has_partners:
        load(session, "s", partners(groups, groups, 1), "hid")
    return table, query.at(groups, query.text)


def asked(session: hw.Session, text: str, mode: str, repeats: int) -> float:
    """The median time of the answer."""
    session.skipping = mode
    session.sql(text).arrow()
    return median(seconds(lambda: session.sql(text).arrow()) for _ in range(repeats))


def use(query: Query, scale: Scale) -> list[Figure]:
    """A query with its sketch and without."""
    with connected() as session:
        _, text = attached(session, query, scale)
        note("capturing the sketch")
        captured = seconds(lambda: session.create_sketch("k", text, on={"r": "a"}, fragments=FRAGMENTS))
        note("asking")
        without = asked(session, text, "never", scale.recomputes)
        expected = session.sql(text).arrow()
        skipping = asked(session, text, "always", scale.recomputes)
        require_equal(session.sql(text).arrow(), expected)
        report = session.explain_skipping(text)
    details = {
        "without_s": without,
        "with_s": skipping,
        "capture_s": captured,
        "rows": report.without.rows,
        "rows_read": report.skipping.rows,
        "files_read": report.skipping.files,
        "row_groups_read": report.skipping.row_groups,
    }
    name = f"use, {query.name}"
    return [
        Figure(name, query.kind, "use", without / skipping, "×", None, details),
        Figure(name, query.kind, "rows read", 100 * report.skipping.rows / max(1, report.without.rows), "%", None, details),
    ]


def maintenance(query: Query, scale: Scale) -> list[Figure]:
    """Commits with a sketch beside capturing it anew."""
    groups = groups_at(scale)
    table = Changing.of(facts(groups), scale.rows)
    others = {"s": partners(groups, groups, 1)} if query.has_partners else {}
    capture = (
        f"SELECT DISTINCT CAST(a * {FRAGMENTS} / {groups} AS INT) AS fragment FROM r "
        f"WHERE a IN ({query.at(groups, query.keys)})"
    )
    with connected() as session:
        spark = Recompute(session.spark)
        spark.cache({"r": table.base, **others}, capture)
        anew = spark.seconds(capture, scale.recomputes)
        spark.drop()
        load(session, "r", table.base, "id")
        for name, rows in others.items():
            load(session, name, rows, "hid")
        text = query.at(groups, query.text)
        note("capturing the sketch")
        created = seconds(lambda: session.create_sketch("k", text, on={"r": "a"}, fragments=FRAGMENTS))
        commits(session, "r", table, scale.deltas[0], 3)
        figures = []
        for size in scale.deltas:
            note(f"commits of {size:,} rows")
            kept = median(commits(session, "r", table, size, scale.repeats(size)))
            details = {"recapture_s": anew, "refresh_s": kept, "capture_s": created}
            figures.append(Figure(f"maintenance, {query.name}", query.kind, "maintenance", anew / kept, "×", size, details))
    return figures


def mix(name: str, scale: Scale) -> list[Figure]:
    """Updates and queries in turn: with a sketch that is maintained, without, and with one that is captured for each query."""
    query = QUERIES[0]
    updates, queries = MIXES[name]
    operations = 12 if scale.quick else 120
    figures = []
    for size in (1, 20, 200, 2_000):
        if size > scale.rows // 10:
            continue
        totals: dict[str, float] = {}
        for mode in ("always", "never"):
            with connected() as session:
                table, text = attached(session, query, scale)
                captured = seconds(partial(session.create_sketch, "k", text, on={"r": "a"}, fragments=FRAGMENTS))
                if mode == "never":
                    session.drop_sketch("k")
                asked(session, text, mode, 1)
                note(f"{name}, {size:,} rows, sketches {mode}")
                totals[mode] = _mixed(session, table, text, (updates, queries, size, operations))
        anew = totals["always"] + captured * (operations * queries // (updates + queries))
        details = {"maintained_s": totals["always"], "without_s": totals["never"], "captured_each_time_s": anew}
        figures.append(Figure(f"mix {name}", "mix", "mix", totals["never"] / totals["always"], "×", size, details))
    return figures


def _mixed(session: hw.Session, table: Changing, text: str, shape: tuple[int, int, int, int]) -> float:
    updates, queries, size, operations = shape
    changes = [table.make(table.rng, 10**9 + i * size, size) for i in range(operations)]

    def run() -> None:
        for number in range(operations):
            if number % (updates + queries) < updates:
                session.insert("r", changes[number])
            else:
                session.sql(text).arrow()

    return seconds(run)


def by_fragments(scale: Scale) -> list[Figure]:
    """Use and size by the number of fragments."""
    query = QUERIES[0]
    figures = []
    for fragments in (10, 100, 1_000, 5_000):
        with connected() as session:
            _, text = attached(session, query, scale)
            sketch = session.create_sketch("k", text, on={"r": "a"}, fragments=fragments)
            without = asked(session, text, "never", 1)
            skipping = asked(session, text, "always", 1)
            share = float(np.mean([each["share"] for each in sketch.stats()["accesses"]]))
        details = {"share": share, "with_s": skipping, "without_s": without}
        figures.append(Figure("fragments", "sweep", "by fragments", without / skipping, "×", fragments, details))
    return figures


WORKLOADS = (
    *(Workload(f"use, {query.name}", partial(use, query)) for query in QUERIES),
    *(Workload(f"maintenance, {query.name}", partial(maintenance, query)) for query in QUERIES),
    *(Workload(f"mix {name}", partial(mix, name)) for name in MIXES),
    Workload("fragments", by_fragments),
)
