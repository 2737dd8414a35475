"""The 22 queries of TPC-H under refreshes of 1000 orders with their items: half of them come, half go.

Three queries read neither orders nor items; for them 1000 rows of partsupp are changed instead.
"""

from __future__ import annotations

import re
import subprocess
import sysconfig
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.measuring import Recompute, connected, load, note, require_equal, resident, seconds
from benchmarks.workload import Figure, Scale, Workload

if TYPE_CHECKING:
    import headwater as hw

QUERIES = {path.stem: path.read_text() for path in sorted((Path(__file__).parents[1] / "tests/tpch/queries").glob("q*.sql"))}
KEYS = {
    "region": ["r_regionkey"],
    "nation": ["n_nationkey"],
    "supplier": ["s_suppkey"],
    "customer": ["c_custkey"],
    "part": ["p_partkey"],
    "partsupp": ["ps_partkey", "ps_suppkey"],
    "orders": ["o_orderkey"],
    "lineitem": ["l_orderkey", "l_linenumber"],
}
ORDERS = 1_000
REFRESHES = 12
Tables = dict[str, pa.Table]


@dataclass(frozen=True)
class Refresh:
    """Rows of tables that go and come in one transaction."""

    going: Tables
    coming: Tables


def generated(scale: Scale, times: int = 1) -> Path:
    """The folder of the tables, so many times as large, made by `tpchgen-cli` for the first workload that asks."""
    factor = scale.tpch * times
    directory = scale.directory / f"tpch-{factor:g}"
    if not (directory / "made").exists():
        note("generating TPC-H")
        program = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
        command = [program, "parquet", f"--scale-factor={factor}", f"--output-dir={directory}"]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603  (of this environment)
        (directory / "made").touch()
    return directory


def read(directory: Path, names: list[str]) -> Tables:
    note("reading TPC-H")
    return {name: plain(pq.read_table(directory / f"{name}.parquet")) for name in names}


def tables_of(query: str) -> list[str]:
    words = set(re.findall(r"\w+", query.lower()))
    return [name for name in KEYS if name in words]


def split(tables: Tables, count: int, size: int) -> tuple[Tables, list[Refresh]]:
    """What to load first, and refreshes of it: of the orders held out some come each time, and of the others some go."""
    if "orders" not in tables and "lineitem" not in tables:
        return tables, _changed_partsupp(tables, count, size)
    key = tables["orders"]["o_orderkey"] if "orders" in tables else pc.unique(tables["lineitem"]["l_orderkey"])
    rng = np.random.default_rng(1)
    drawn = rng.choice(len(key), min(size, len(key) // (count * 2) * 2) * count, replace=False)
    # Which part of the refreshes an order has: coming with refresh p, going with refresh p, or none.
    parts = np.full(len(key), -1, np.int32)
    parts[drawn] = np.arange(len(drawn)) % (2 * count)
    pieces = [_of_part(tables, key, parts, part) for part in range(2 * count)]
    loaded = {**tables, **_of_part(tables, key, parts, -1)}
    for piece in pieces[count:]:
        loaded = {**loaded, **{name: pa.concat_tables([loaded[name], rows]) for name, rows in piece.items()}}
    return loaded, [Refresh(pieces[count + n], pieces[n]) for n in range(count)]


def _of_part(tables: Tables, key: pa.ChunkedArray, parts: np.ndarray, part: int) -> Tables:
    """Orders and items whose order has this part."""
    found = {}
    for name, column in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
        if name in tables:
            places = pc.index_in(tables[name][column], value_set=pc.filter(key, pa.array(parts == part)))
            found[name] = tables[name].filter(places.is_valid())
    return found


def _changed_partsupp(tables: Tables, count: int, size: int) -> list[Refresh]:
    rows = tables["partsupp"]
    half = max(1, min(size, rows.num_rows // count) // 2)
    places = np.random.default_rng(1).permutation(rows.num_rows)
    refreshes = []
    for number in range(count):
        going = rows.take(np.sort(places[number * half : (number + 1) * half]))
        quantity = pa.array((going["ps_availqty"].to_numpy() * 7 + 13) % 9_999 + 1, going.schema.field("ps_availqty").type)
        coming = going.set_column(going.column_names.index("ps_availqty"), going.schema.field("ps_availqty"), quantity)
        refreshes.append(Refresh({"partsupp": going}, {"partsupp": coming}))
    return refreshes


def refresh_seconds(session: hw.Session, refresh: Refresh) -> float:
    def transact() -> None:
        with session.transaction() as transaction:
            for name, rows in refresh.going.items():
                transaction.delete(name, rows)
            for name, rows in refresh.coming.items():
                transaction.insert(name, rows)

    return seconds(transact)


def measure(name: str, scale: Scale) -> list[Figure]:
    query = QUERIES[name]
    tables = read(generated(scale), tables_of(query))
    count = max(4, REFRESHES // 2) if scale.quick else REFRESHES
    loaded, refreshes = split(tables, count, ORDERS)
    with connected() as session:
        spark = Recompute(session.spark)
        spark.cache(loaded, query)
        recompute = spark.seconds(query, scale.recomputes)
        loading = sum(load(session, table, rows, KEYS[table]) for table, rows in loaded.items())
        note("creating the view")
        created = seconds(lambda: session.create_view("v", query))
        view = session.view("v")
        require_equal(view.arrow(), spark.answer(query))
        note("refreshes")
        times = [refresh_seconds(session, refresh) for refresh in refreshes][2:]
        note("comparing with Spark")
        spark.drop()
        spark.cache({table: session.table(table).arrow() for table in tables}, query)
        require_equal(view.arrow(), spark.answer(query))
        details = {
            "refresh_s": median(times),
            "longest_s": max(times),
            "recompute_s": recompute,
            "load_s": loading,
            "create_s": created,
            "class": view.maintenance,
            "memory": resident(),
        }
    changed = sum(rows.num_rows for side in (refreshes[0].going, refreshes[0].coming) for rows in side.values())
    return [Figure(name, "tpch", "speedup", recompute / details["refresh_s"], "×", changed, details)]


def plain(table: pa.Table) -> pa.Table:
    """Text as plain strings: joins of Arrow know no views of them."""
    fields = [pa.field(column.name, pa.string() if column.type == pa.string_view() else column.type) for column in table.schema]
    return table.cast(pa.schema(fields))


def summary(figures: list[Figure]) -> list[Figure]:
    speedups = [figure.value for figure in figures if figure.measure == "speedup"]
    return [Figure("all queries", "tpch", "median speedup", median(speedups), "×")] if speedups else []


WORKLOADS = tuple(Workload(name, partial(measure, name)) for name in QUERIES)
