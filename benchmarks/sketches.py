"""Sketches: what skipping saves, what maintenance costs beside capturing anew, and both in mixes of updates and queries.

Tables that are skipped are in Parquet files clustered on the attribute, and attached. Captured anew means the cheapest way
there is for Spark: the fragments of the rows of qualifying groups, of a table in its cache, where a fragment takes no more than
a multiplication and a division. What it finds is compared with the sketch, which is cut in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from benchmarks.data import Changing, facts, partners
from benchmarks.measuring import Recompute, commits, connected, load, note, require_equal, seconds
from benchmarks.tpch import QUERIES as TPCH
from benchmarks.tpch import generated, plain, tables_of
from benchmarks.workload import Figure, Scale, Workload

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

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
# Queries of TPC-H that need few orders, and what their accesses are sketched by.
SELECTIVE = {
    "q03": {"lineitem": "l_orderkey", "orders": "o_orderkey"},
    "q18": {"lineitem": "l_orderkey", "orders": "o_orderkey"},
}
MIXES = {"1U1Q": (1, 1), "1U5Q": (1, 5), "5U1Q": (5, 1)}
OPERATIONS = 1_000
# Of operations with sketches always used, and with `auto`.
TURNS = 10


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


def asked(session: hw.Session, text: str, mode: str, repeats: int) -> float:
    """The median time of the answer."""
    session.skipping = mode
    for _ in range(2):
        session.sql(text).arrow()
    return median(seconds(lambda: session.sql(text).arrow()) for _ in range(repeats))


def used(session: hw.Session, name: str, text: str, captured: float, repeats: int) -> list[Figure]:
    """A query without its sketch, with it, and with it where Spark has to read what is left."""
    note(f"asking {name}")
    without = asked(session, text, "never", repeats)
    expected = session.sql(text).arrow()
    assert expected.num_rows, "the answer is empty"
    skipping = asked(session, text, "always", repeats)
    require_equal(session.sql(text).arrow(), expected)
    room, session.sketchbook.room = session.sketchbook.room, 0
    on_spark = asked(session, text, "always", repeats)
    require_equal(session.sql(text).arrow(), expected)
    session.sketchbook.room = room
    report = session.explain_skipping(text)
    details = {
        "without_s": without,
        "with_s": skipping,
        "with_on_spark_s": on_spark,
        "capture_s": captured,
        "answer": expected.num_rows,
        "rows": report.without.rows,
        "rows_read": report.skipping.rows,
        "files_read": report.skipping.files,
        "row_groups": report.without.row_groups,
        "row_groups_read": report.skipping.row_groups,
    }
    share = 100 * report.skipping.rows / max(1, report.without.rows)
    return [
        Figure(f"use, {name}", "use", "use", without / skipping, "×", None, details),
        Figure(f"use, {name}", "use", "use on Spark", without / on_spark, "×", None, details),
        Figure(f"use, {name}", "use", "rows read", share, "%", None, details),
    ]


def use(query: Query, scale: Scale) -> list[Figure]:
    """A query over an attached table, with its sketch and without."""
    groups = groups_at(scale)
    with connected() as session:
        base = Changing.of(facts(groups), scale.rows).base
        session.create_table("r", source=clustered(base, scale.directory))
        load(session, "s", partners(groups, groups, 1), "hid")
        text = query.at(groups, query.text)
        note("capturing the sketch")
        captured = seconds(partial(session.create_sketch, "k", text, on={"r": "a"}, fragments=FRAGMENTS))
        return used(session, query.name, text, captured, min(5, scale.recomputes))


def use_of_tpch(name: str, scale: Scale) -> list[Figure]:
    """The same for a query of TPC-H, whose orders and items come in the order of their keys."""
    source = generated(scale)
    with connected() as session:
        for table in tables_of(TPCH[name]):
            place = scale.directory / f"sketched-{source.name}" / table
            if not place.exists():
                place.mkdir(parents=True)
                rows = plain(pq.read_table(source / f"{table}.parquet"))
                # What is needed lies here and there, so the pieces that can be left out are small.
                pq.write_table(rows, place / "0.parquet", row_group_size=10_000, write_page_index=True)
            session.create_table(table, source=place)
        note("capturing the sketch")
        made = partial(session.create_sketch, "k", TPCH[name], on=SELECTIVE[name], fragments=10 * FRAGMENTS)
        return used(session, f"TPC-H {name}", TPCH[name], seconds(made), min(5, scale.recomputes))


def capture_of(query: Query, groups: int) -> str:
    return (
        f"SELECT DISTINCT CAST(a * {FRAGMENTS} / {groups} AS INT) AS fragment FROM r "
        f"WHERE a IN ({query.at(groups, query.keys)})"
    )


def maintenance(query: Query, scale: Scale) -> list[Figure]:
    """Commits with a sketch beside capturing it anew; half of the rows of a delta go, half come."""
    groups = groups_at(scale)
    table = Changing.of(facts(groups), scale.rows)
    others = {"s": partners(groups, groups, 1)} if query.has_partners else {}
    capture = capture_of(query, groups)
    with connected() as session:
        spark = Recompute(session.spark)
        spark.cache({"r": table.base, **others}, capture + " id")
        anew = spark.seconds(capture, scale.recomputes)
        assert spark.answer(capture).num_rows, "the answer is empty"
        load(session, "r", table.base, "id")
        for name, rows in others.items():
            load(session, name, rows, "hid")
        note("capturing the sketch")
        session.partition("r", "a", bounds=[-(-i * groups // FRAGMENTS) for i in range(1, min(FRAGMENTS, groups))])
        text = query.at(groups, query.text)
        created = seconds(lambda: session.create_sketch("k", text, on={"r": "a"}))
        found = {fragment for _, fragment in session.sketch("k").rows()}
        if groups >= FRAGMENTS:
            assert found == set(spark.answer(capture)["fragment"].to_pylist()), "the sketch differs from Spark's"
        commits(session, "r", table, scale.deltas[0], 3)
        figures = []
        for size in scale.deltas[:3]:
            note(f"commits of {size:,} rows")
            kept = median(commits(session, "r", table, size, scale.repeats(size)))
            details = {"recapture_s": anew, "refresh_s": kept, "capture_s": created, "fragments": len(found)}
            figures.append(Figure(f"maintenance, {query.name}", query.kind, "maintenance", anew / kept, "×", size, details))
        figures += _break_even(session, spark, table, query, scale)
    return figures


def _break_even(session: hw.Session, spark: Recompute, table: Changing, query: Query, scale: Scale) -> list[Figure]:
    """The largest change, in per cent of the table, that is quicker to maintain than to capture anew from a changed table."""
    capture = capture_of(query, groups_at(scale))
    shares, even = [], 0.0
    for per_cent in (2, 5, 10):
        size = scale.rows * per_cent // 100
        if size < 2:
            continue
        changed = spark.seconds_with_change("r", "id", table.change(size), capture)
        note(f"commits of {size:,} rows")
        (kept,) = commits(session, "r", table, size, 1)
        shares.append((per_cent, kept, changed))
        even = per_cent if kept <= changed else even
    details = {f"{per_cent} %": {"refresh_s": kept, "recapture_s": changed} for per_cent, kept, changed in shares}
    return [Figure(f"maintenance, {query.name}", query.kind, "break-even", even, "%", None, details)]


def mix(name: str, scale: Scale) -> list[Figure]:
    """Updates and queries in turn: with a sketch that is maintained, without, and captured for each query.

    Some of the operations are run and timed; their medians stand for all. What `auto` does is run in full, in one mix.
    """
    query, groups = QUERIES[0], groups_at(scale)
    sizes = [size for size in (1, 20, 200, 2_000) if size <= scale.rows // 10]
    automatic: list[Figure] = []
    with connected() as session:
        table = Changing.of(facts(groups), scale.rows)
        session.create_table("r", source=clustered(table.base, scale.directory))
        text = query.at(groups, query.text)
        note("capturing the sketch")
        session.create_sketch("k", text, on={"r": "a"}, fragments=FRAGMENTS).drop()
        captured = seconds(partial(session.create_sketch, "k", text, on={"r": "a"}, fragments=FRAGMENTS))
        with_sketch, without = _Times(), _Times()
        asked(session, text, "always", 1)
        for size in sizes:
            with_sketch[size] = _timed(session, table, text, size, 3 if scale.quick else 9)
        if MIXES[name] == (1, 1):
            automatic = [_automatic(session, table, text, 100 if scale.quick else OPERATIONS)]
        session.drop_sketch("k")
        asked(session, text, "never", 1)
        for size in sizes:
            without[size] = _timed(session, table, text, size, 2 if scale.quick else 5)
    figures = []
    for size in sizes:
        kept, none = with_sketch.total(name, size), without.total(name, size)
        anew = without.total(name, size, captured + with_sketch[size][1])
        details = {
            "maintained_s": kept,
            "without_s": none,
            "captured_each_time_s": anew,
            "update_s": with_sketch[size][0],
            "update_without_s": without[size][0],
            "query_s": with_sketch[size][1],
            "query_without_s": without[size][1],
        }
        figures += [
            Figure(f"mix {name}", "mix", "mix", none / kept, "×", size, details),
            Figure(f"mix {name}", "mix", "captured each time to none", anew / none, "×", size, details),
        ]
    return [*figures, *automatic]


class _Times(dict[int, tuple[float, float]]):
    """The seconds of an update and of a query, by the rows of an update."""

    def total(self, mix: str, size: int, query: float | None = None) -> float:
        """The seconds of all operations of a mix; with other seconds of a query, if they are given."""
        updates, queries = MIXES[mix]
        share = queries / (updates + queries)
        return OPERATIONS * ((1 - share) * self[size][0] + share * (self[size][1] if query is None else query))


def _automatic(session: hw.Session, table: Changing, text: str, operations: int) -> Figure:
    """As many operations with the sketch always used, and with `auto`: by turns, so that the machine's moods meet both."""
    totals = dict.fromkeys(("always", "auto"), 0.0)
    for turn in range(TURNS):
        for mode in totals:
            note(f"{operations:,} operations, sketches {mode}, {turn + 1} of {TURNS}")
            session.skipping = mode
            started = perf_counter()
            _timed(session, table, text, 20, operations // 2 // TURNS)
            totals[mode] += perf_counter() - started
    details = {"auto_s": totals["auto"], "maintained_s": totals["always"], "operations": operations}
    return Figure("mix 1U1Q", "mix", "auto to the better", totals["auto"] / totals["always"], "×", 20, details)


def _timed(session: hw.Session, table: Changing, text: str, size: int, times: int) -> tuple[float, float]:
    """The median seconds of an update of so many rows and of a query, in turn."""
    updates, queries = [], []
    for _ in range(times):
        coming = table.make(table.rng, 10**9 + table.made, size)
        table.made += size
        started = perf_counter()
        session.insert("r", coming)
        updates.append(perf_counter() - started)
        started = perf_counter()
        session.sql(text).arrow()
        queries.append(perf_counter() - started)
    return median(updates), median(queries)


def use_by_fragments(scale: Scale) -> list[Figure]:
    """Use, size and upkeep by the number of fragments."""
    query, groups = QUERIES[0], groups_at(scale)
    figures = []
    with connected() as session:
        table = Changing.of(facts(groups), scale.rows)
        session.create_table("r", source=clustered(table.base, scale.directory))
        text = query.at(groups, query.text)
        without = asked(session, text, "never", 3)
        for fragments in (10, 100, 1_000, 5_000):
            note(f"{fragments:,} fragments")
            sketch = session.create_sketch("k", text, on={"r": "a"}, fragments=fragments)
            skipping = asked(session, text, "always", 3)
            (access,) = sketch.stats()["accesses"]
            updates, _ = _timed(session, table, text, 100, 5)
            details = {"share": access["share"], "with_s": skipping, "without_s": without, "update_s": updates}
            figures.append(Figure("use by fragments", "sweep", "use by fragments", without / skipping, "×", fragments, details))
            session.drop_sketch("k")
    return figures


WORKLOADS = (
    *(Workload(f"use, {query.name}", partial(use, query)) for query in QUERIES),
    *(Workload(f"use, TPC-H {name}", partial(use_of_tpch, name)) for name in SELECTIVE),
    *(Workload(f"maintenance, {query.name}", partial(maintenance, query)) for query in QUERIES),
    *(Workload(f"mix {name}", partial(mix, name)) for name in MIXES),
    Workload("use by fragments", use_by_fragments),
)
