"""Sizes of sketches estimated from a sample: near those of the sketches that are then made, and the best column is found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_sketches import both

import headwater as hw
from headwater.definitions import Definitions
from headwater.skipping import capturing, estimating, sampling

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headwater.algebra.plan import Node
    from headwater.delta import Delta
    from headwater.sketches.captured import Estimate

ROWS, PART = 60_000, 0.2
COLUMNS = "a BIGINT, k BIGINT, near BIGINT, far BIGINT, price BIGINT, label STRING"
# Few large groups, many small ones, and rows of no group; the sum of prices is large for few of either.
QUERIES = {
    "large groups": "SELECT a, sum(price) AS s FROM r GROUP BY a HAVING sum(price) > 25000",
    "small groups": "SELECT k, sum(price) AS s FROM r WHERE a >= 10 GROUP BY k HAVING sum(price) > 1050",
    "rows": "SELECT k, price FROM r WHERE a BETWEEN 20 AND 29 AND price > 90",
    "first rows": "SELECT label, price FROM r ORDER BY price DESC LIMIT 30",
    "first groups": "SELECT a, count(*) AS n FROM r WHERE price > 100 GROUP BY a ORDER BY n DESC LIMIT 5",
    "a part of all": (
        "SELECT k, sum(price) AS s FROM r WHERE a >= 10 GROUP BY k HAVING sum(price) > (SELECT sum(price) * 0.0003 FROM r)"
    ),
    "joined": "SELECT r.k, sum(price) AS s FROM r JOIN t ON r.a = t.a WHERE t.b < 3 GROUP BY r.k HAVING sum(price) > 800",
}


def table() -> pa.Table:
    """`near` follows the groups, `far` follows nothing; what has a high price is at the beginning of both kinds of groups."""
    rng = np.random.default_rng(3)
    k = rng.integers(0, 10_000, ROWS)
    a = k // 50
    price = rng.integers(0, 100, ROWS) + np.where(a < 10, 150, 0) + np.where(k % 40 == 0, 120, 0)
    numbers = {"a": a, "k": k, "near": k * 10 + rng.integers(0, 10, ROWS), "far": rng.integers(0, 5_000, ROWS), "price": price}
    return pa.table({**numbers, "label": pa.array(k % 7).cast(pa.string())})


@pytest.fixture
def session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[hw.Session]:
    monkeypatch.setattr(sampling, "FEWEST", 1_000)
    monkeypatch.setattr(sampling, "PART", PART)
    with hw.connect(spark=spark, placement="driver") as made:
        made.create_table("t", "a BIGINT, b BIGINT")
        made.insert("t", [(a, a % 10) for a in range(200)])
        yield made


def told(session: hw.Session, query: str, fragments: int | None = None) -> dict[str, Estimate]:
    """The estimates by column."""
    places = [("r", column) for column in range(6)]
    found = estimating.estimates(session, session.analysed(query), places, fragments)
    return {told.estimate.column: told.estimate for told in found}


def test_estimates_are_near_what_sketches_are(session: hw.Session) -> None:
    session.create_table("r", COLUMNS)
    session.insert("r", table())
    # Of an answer that is empty nothing is known: the fragments are as fine as they may be, for when it is not.
    empty, usual = (told(session, QUERIES["large groups"].replace("25000", most))["near"] for most in ("99999999", "25000"))
    assert empty.share == 0
    assert empty.fragments > 4 * usual.fragments
    for kind, query in QUERIES.items():
        truth: dict[str, float] = {}
        for fragments, columns in ((12, ("near",)), (300, ("a", "near", "far"))):
            estimates = told(session, query, fragments)
            assert estimates == told(session, query, fragments)
            for column in columns:
                sketch = session.create_sketch("s", query, on={"r": column}, fragments=fragments)
                (access,) = sketch.stats()["accesses"]
                assert estimates[column].share == pytest.approx(access["share"], rel=0.5, abs=0.06), (kind, column, fragments)
                truth[column] = access["share"]
                session.drop_sketch("s")
        # With as many fragments as there may be, the one that follows nothing is not taken.
        sketch = session.create_sketch("s", query)
        (access,) = sketch.stats()["accesses"]
        assert access["share"] <= min(truth.values()) * 1.5 + 0.01, kind
        assert sketch.stats()["estimates"][0]["column"] == access["column"] != "far"
        session.drop_sketch("s")


def test_what_was_not_said_is_chosen(session: hw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """One run over the sample tells of all columns; what was told can be seen, and is there again after a restart."""
    session.create_table("r", COLUMNS)
    session.insert("r", table())
    runs: list[int] = []
    over = Definitions.over

    def counted(self: Definitions, root: Node, rows: Mapping[str, Delta]) -> Delta:
        runs.append(max(map(len, rows.values())))
        return over(self, root, rows)

    monkeypatch.setattr(Definitions, "over", counted)
    query = QUERIES["large groups"]
    told = session.sql(f"CREATE SKETCH few FOR {query}").stats()["estimates"]
    assert len(runs) == 1
    assert max(runs) < 1.1 * PART * ROWS
    assert told[0]["column"] == "a"
    assert {each["column"] for each in told} == {"a", "k", "near", "far", "price", "label"}
    assert told[0]["row_groups"] is None
    shown = dict(zip(("share", "estimated"), session.sql("SHOW SKETCHES").rows()[0][4:6], strict=True))
    assert shown["estimated"] == f"{told[0]['share']:.1%}"
    assert float(shown["share"].rstrip("%")) == pytest.approx(5, abs=2)
    # A column was named, but not a number of fragments; that of small tables is the usual one.
    assert not session.create_sketch("usual", query, on={"r": "far"}).stats()["estimates"]
    monkeypatch.setattr(capturing, "_LARGE", ROWS)
    (only,) = session.create_sketch("named", query, on={"r": "near"}).stats()["estimates"]
    assert only["column"] == "near"
    (access,) = session.sketch("named").stats()["accesses"]
    assert access["of"] == only["fragments"] + 1
    # What is cut already stays as it is.
    assert not session.create_sketch("again", query, on={"r": "near"}).stats()["estimates"]
    with pytest.raises(hw.InvalidOption, match="as far as one can tell; name one"):
        session.create_sketch("all", "SELECT a, sum(price) AS s FROM r GROUP BY a")


def test_files_that_can_be_skipped_count(session: hw.Session, tmp_path: Path) -> None:
    """Of two columns that leave as many rows, the one is taken that files are sorted by; sketches come by themselves so."""
    rows = table().sort_by("near")
    (tmp_path / "r").mkdir()
    pq.write_table(rows, tmp_path / "r" / "0.parquet", row_group_size=2_000)
    session.create_table("r", source=tmp_path / "r")
    query = "SELECT count(*) AS n, label FROM r WHERE near < 52000 AND near > 50000 AND price BETWEEN 3 AND 5 GROUP BY label"
    estimates = told(session, query)
    assert estimates["near"].row_groups == pytest.approx(0.07, abs=0.05)
    assert estimates["price"].row_groups == pytest.approx(1.0, abs=0.1)
    assert next(iter(estimates)) in ("a", "k", "near")
    session.learns_sketches = True
    for number in range(5):
        assert not session.sketches()
        session.sql(query.replace("52000", str(52000 - number))).rows()
    (sketch,) = session.sketches().values()
    assert sketch.stats()["estimates"][0]["column"] in ("a", "k", "near")
    session.skipping = "always"
    assert both(session, query.replace("52000", "51990"))
    assert sketch.stats()["times_used"] == 1


def test_what_a_sample_has_not_met() -> None:
    """Of a hundred fragments with five needed rows each, a fifth of these meets two thirds; of single ones, a fifth."""
    rng = np.random.default_rng(5)
    depths = np.ones(1_000)
    for needed, each in ((400, 5), (300, 1), (200, 2)):
        found = []
        for _ in range(50):
            drawn = rng.choice(needed * each, needed * each // 5, replace=False)
            found.append(estimating.share(depths, np.bincount(drawn // each, minlength=1_000), 0.2))
        assert np.mean(found) == pytest.approx(needed / 1_000, rel=0.1)
    assert estimating.share(depths, np.bincount([1, 2, 3], minlength=1_000), 1.0) == 3 / 1_000
    assert estimating.share(depths, np.zeros(1_000, np.int64), 0.2) == 0.0
