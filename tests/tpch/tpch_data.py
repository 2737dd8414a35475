"""TPC-H for the tests: tables made by `tpchgen-cli`, refreshes that touch every table, and a model to check the session by.

A refresh is one transaction, in the manner of the benchmark's RF1 and RF2: new orders with their lineitems come (from a part
of the data held out of the load), old ones go. Beyond the benchmark, rows of all other tables change, aimed at the values that
the queries select: brands, market segments, balances, the homes of suppliers, even the names of nations and regions.
"""

from __future__ import annotations

import subprocess
import sysconfig
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

QUERIES = {path.stem: path.read_text() for path in sorted((Path(__file__).parent / "queries").glob("q*.sql"))}

SCHEMAS = {
    "region": "r_regionkey BIGINT, r_name STRING, r_comment STRING",
    "nation": "n_nationkey BIGINT, n_name STRING, n_regionkey BIGINT, n_comment STRING",
    "supplier": "s_suppkey BIGINT, s_name STRING, s_address STRING, s_nationkey BIGINT, s_phone STRING, "
    "s_acctbal DECIMAL(15, 2), s_comment STRING",
    "customer": "c_custkey BIGINT, c_name STRING, c_address STRING, c_nationkey BIGINT, c_phone STRING, "
    "c_acctbal DECIMAL(15, 2), c_mktsegment STRING, c_comment STRING",
    "part": "p_partkey BIGINT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT, p_container STRING, "
    "p_retailprice DECIMAL(15, 2), p_comment STRING",
    "partsupp": "ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, ps_supplycost DECIMAL(15, 2), ps_comment STRING",
    "orders": "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, o_totalprice DECIMAL(15, 2), o_orderdate DATE, "
    "o_orderpriority STRING, o_clerk STRING, o_shippriority INT, o_comment STRING",
    "lineitem": "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, l_quantity DECIMAL(15, 2), "
    "l_extendedprice DECIMAL(15, 2), l_discount DECIMAL(15, 2), l_tax DECIMAL(15, 2), l_returnflag STRING, "
    "l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING, "
    "l_shipmode STRING, l_comment STRING",
}
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
REFRESHES = 3
# of this many orders, one comes with each refresh and one goes
STRIDE = 100

Tables = dict[str, pa.Table]


@dataclass(frozen=True)
class Refresh:
    """What one transaction does, by table."""

    deletes: Tables
    inserts: Tables
    upserts: Tables


@dataclass(frozen=True)
class Held:
    """The rows of a table, held by the model."""

    rows: pa.Table
    schema: str

    def arrow(self) -> pa.Table:
        return self.rows


@dataclass
class Model:
    """What the tables must hold, kept with nothing of the engine; the oracle reads it as it would read a session."""

    spark: SparkSession
    contents: Tables
    epoch: int = 0

    def tables(self) -> Mapping[str, Held]:
        return {name: Held(rows, SCHEMAS[name]) for name, rows in self.contents.items()}

    def apply(self, refresh: Refresh) -> None:
        for name, rows in refresh.deletes.items():
            self.contents[name] = _without(self.contents[name], rows, KEYS[name])
        for name, rows in refresh.inserts.items():
            self.contents[name] = pa.concat_tables([self.contents[name], rows])
        for name, rows in refresh.upserts.items():
            self.contents[name] = pa.concat_tables([_without(self.contents[name], rows, KEYS[name]), rows])


def generate(directory: Path, scale: float) -> Tables:
    """All tables at that scale, in the types of `SCHEMAS`."""
    program = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    subprocess.run(
        [program, "parquet", f"--scale-factor={scale}", f"--output-dir={directory}"], check=True, capture_output=True
    )
    return {name: _plain(pq.read_table(directory / f"{name}.parquet")) for name in SCHEMAS}


def held_out(tables: Tables) -> tuple[Tables, list[Refresh]]:
    """What to load first, and the refreshes to apply then, one by one."""
    places = _places(tables)
    coming = [_orders(tables, np.flatnonzero(places == number)) for number in range(REFRESHES)]
    going = [_orders(tables, np.flatnonzero(places == REFRESHES + number)) for number in range(REFRESHES)]
    loaded = dict(tables)
    for part in coming:
        for name, rows in part.items():
            loaded[name] = _without(loaded[name], rows, KEYS[name])
    # orders that the first refresh took away come back in the last, with their old keys
    coming[-1] = {name: pa.concat_tables([rows, going[0][name]]) for name, rows in coming[-1].items()}
    changes = _changes(tables)
    return loaded, [Refresh(going[number], coming[number], changes[number]) for number in range(REFRESHES)]


def _places(tables: Tables) -> np.ndarray[Any, Any]:
    """A number below STRIDE for every order, the same for as many; the largest orders, rare in answers, get the first ones."""
    lines = tables["lineitem"].group_by("l_orderkey").aggregate([("l_quantity", "sum")])
    largest = lines.sort_by([("l_quantity_sum", "descending")])["l_orderkey"][: 4 * REFRESHES]
    places = np.arange(tables["orders"].num_rows) % STRIDE
    is_large = pc.is_in(tables["orders"]["o_orderkey"], value_set=largest).to_numpy()
    places[is_large] = np.arange(4 * REFRESHES) % (2 * REFRESHES)
    return places


def _orders(tables: Tables, rows: np.ndarray[Any, Any]) -> Tables:
    orders = tables["orders"].take(rows)
    keys = pa.table({"l_orderkey": orders["o_orderkey"]})
    lines = tables["lineitem"].join(keys, "l_orderkey", join_type="left semi")
    return {"orders": orders, "lineitem": lines.select(tables["lineitem"].column_names)}


def _changes(tables: Tables) -> list[Tables]:
    """Changed rows of the other tables. Nation 2 is BRAZIL, 3 CANADA, 6 FRANCE, 7 GERMANY, 20 SAUDI ARABIA."""
    suppliers = np.arange(1, 99, 5)
    parts = np.arange(3, tables["part"].num_rows, 40)
    return [
        {
            "customer": _changed(
                tables["customer"],
                np.arange(0, 1500, 3),
                c_acctbal=["9999.99", "-10.50", "100.00"],
                c_phone=["13-1", "31-2", "99-3"],
                c_mktsegment=["MACHINERY", "BUILDING"],
            ),
            "supplier": _changed(tables["supplier"], suppliers, s_nationkey=[2, 3, 7, 20], s_acctbal=["-1.00", "5000.00"]),
            "part": _changed(
                tables["part"], parts, p_brand=["Brand#23", "Brand#12"], p_container=["MED BOX", "SM BOX"], p_size=[3, 15]
            ),
            "partsupp": _changed(tables["partsupp"], np.arange(0, 8000, 50), ps_availqty=[9999, 1], ps_supplycost=["1.00"]),
        },
        {
            "customer": _changed(tables["customer"], np.arange(0, 1500, 5), c_mktsegment=["BUILDING"]),
            "supplier": _changed(
                tables["supplier"], suppliers[::2], s_comment=["x Customer y Complaints", "fine"], s_name=["renamed"]
            ),
            "part": _changed(
                tables["part"], parts - 1, p_type=["ECONOMY ANODIZED STEEL", "PROMO BRASS"], p_name=["forest green"]
            ),
            "nation": _changed(tables["nation"], np.array([6, 7]), n_name=["GERMANY", "FRANCE"]),
        },
        {
            "customer": tables["customer"].take(np.arange(0, 1500, 4)),
            "part": tables["part"].take(np.concatenate([parts, parts - 1])),
            "partsupp": _changed(tables["partsupp"], np.arange(1, 8000, 60), ps_supplycost=["0.50", "2000.00"]),
            "nation": tables["nation"].take([6, 7]),
            "region": _changed(tables["region"], np.array([2, 3]), r_name=["EUROPE", "ASIA"]),
        },
    ]


def _changed(table: pa.Table, rows: np.ndarray[Any, Any], **values: Sequence[Any]) -> pa.Table:
    """These rows of the table with other values, dealt out in turn."""
    changed = table.take(rows[rows < table.num_rows])
    for name, choices in values.items():
        kind = table.schema.field(name).type
        dealt = [choices[place % len(choices)] for place in range(changed.num_rows)]
        column = pa.array([Decimal(value) for value in dealt] if pa.types.is_decimal(kind) else dealt, kind)
        changed = changed.set_column(changed.column_names.index(name), name, column)
    return changed


def _without(table: pa.Table, rows: pa.Table, key: list[str]) -> pa.Table:
    return table.join(rows.select(key), key, join_type="left anti").select(table.column_names)


def _plain(table: pa.Table) -> pa.Table:
    # joins of Arrow, and older readers, know no string views
    fields = [pa.field(column.name, pa.string() if column.type == pa.string_view() else column.type) for column in table.schema]
    return table.cast(pa.schema(fields))
