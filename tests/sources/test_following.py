"""Streams that tables follow: what is in a table is what Spark reads from the same files, whatever happened in between."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id BIGINT, brand STRING, price INT"
ARROW = pa.schema([("id", pa.int64()), ("brand", pa.string()), ("price", pa.int32())])
TOTALS = "SELECT brand, SUM(price) AS total, COUNT(*) AS n FROM sales GROUP BY brand"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    return folder


@pytest.fixture
def sessions(spark: SparkSession, tmp_path: Path) -> Iterator[Any]:
    """Opens the directory; what is open at the end is closed."""
    opened: list[hw.Session] = []

    def connect(name: str | None = "state", **options: Any) -> hw.Session:
        opened.append(hw.connect(None if name is None else tmp_path / name, spark=spark, **options))
        return opened[-1]

    yield connect
    for session in opened:
        session.close()


def put(folder: Path, name: str, rows: list[dict[str, Any]], schema: pa.Schema = ARROW) -> None:
    """A file that appears whole."""
    beside = folder.parent / f"{name}.part"
    pq.write_table(pa.Table.from_pylist(rows, schema), beside)
    beside.rename(folder / f"{name}.parquet")


def put_lines(folder: Path, name: str, lines: list[str]) -> None:
    beside = folder.parent / f"{name}.part"
    beside.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    beside.rename(folder / f"{name}.json")


def sales(first: int, count: int) -> list[dict[str, Any]]:
    return [{"id": i, "brand": "ab"[i % 2], "price": i % 7} for i in range(first, first + count)]


def stream(spark: SparkSession, files: Path, schema: str = SCHEMA) -> DataFrame:
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(str(files))


def oracle(spark: SparkSession, files: Path, query: str) -> Counter[Any]:
    spark.read.schema(SCHEMA).parquet(str(files)).createOrReplaceTempView("sales")
    return Counter(tuple(row) for row in spark.sql(query).collect())


def test_a_directory_is_followed_over_restarts(spark: SparkSession, sessions: Any, files: Path) -> None:
    session = sessions()
    session.create_table("sales", SCHEMA, key="id")
    totals = session.create_view("totals", TOTALS)
    for number in range(3):
        put(files, f"{number}", sales(number * 100, 100))
    followed = session.follow("sales", stream(spark, files))
    session.await_idle()
    assert Counter(totals.rows()) == oracle(spark, files, TOTALS)
    assert followed.progress.rows == 300
    assert followed.progress.batch == 1
    assert followed.progress.dead == 0
    followed.stop()
    assert followed.progress.state == "stopped"
    put(files, "3", sales(300, 10))
    with pytest.raises(hw.StreamFailed, match="stream 'sales' was stopped, and its source may have more"):
        followed.await_idle()
    session.await_idle()
    followed.resume()
    session.await_idle()
    assert Counter(totals.rows()) == oracle(spark, files, TOTALS)
    session.close()

    put(files, "4", sales(310, 10))
    again = sessions()
    assert again.snapshot.positions["sales"]["batch"] == 2
    again.follow("sales", stream(spark, files))
    again.await_idle()
    assert Counter(again.view("totals").rows()) == oracle(spark, files, TOTALS)
    assert again.streams()["sales"].progress.rows == 10


def test_whatever_a_stream_is_called_it_touches_nothing_but_its_own_checkpoint(
    spark: SparkSession, sessions: Any, files: Path, tmp_path: Path
) -> None:
    session = sessions()
    session.create_table("sales", SCHEMA)
    put(files, "0", sales(0, 10))
    session.follow("sales", stream(spark, files)).await_idle()
    session.streams()["sales"].stop()
    before = {path for path in tmp_path.rglob("*") if path.is_file() and "log" not in path.parts}
    names = ["..", "Ä/\N{OWL}" * 100]
    for name in names:
        session.follow("sales", stream(spark, files), name=name, trigger={"availableNow": True}).await_idle()
    assert before <= {path for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.name for path in tmp_path.iterdir()} == {"state", "files"}
    assert len(list((tmp_path / "state" / "streams").iterdir())) == 1 + len(names)
    with pytest.raises(hw.InvalidName, match="cannot be the name of a stream"):
        session.follow("sales", stream(spark, files), name="")
    session.close()

    put(files, "1", sales(10, 5))
    again = sessions()
    for name in ("sales", names[0]):
        again.follow("sales", stream(spark, files), name=name, trigger={"availableNow": True}).await_idle()
        assert again.streams()[name].progress.rows == 5
    assert len(again.table("sales")) == 10 * (1 + len(names)) + 5 * 2


def test_a_checkpoint_of_an_earlier_release_is_found(spark: SparkSession, sessions: Any, files: Path, tmp_path: Path) -> None:
    session = sessions()
    session.create_table("Sales", SCHEMA)
    put(files, "0", sales(0, 10))
    session.follow("Sales", stream(spark, files), trigger={"availableNow": True}).await_idle()
    session.close()
    (kept,) = (tmp_path / "state" / "streams").iterdir()
    kept.rename(kept.with_name("Sales"))
    put(files, "1", sales(10, 5))
    session = sessions()
    session.follow("Sales", stream(spark, files), trigger={"availableNow": True}).await_idle()
    assert len(session.table("Sales")) == 15


def test_a_batch_that_spark_gives_again_is_recognised(spark: SparkSession, sessions: Any, files: Path, tmp_path: Path) -> None:
    session = sessions()
    session.create_table("sales", SCHEMA)
    put(files, "0", sales(0, 10))
    followed = session.follow("sales", stream(spark, files))
    session.await_idle()
    followed.stop()
    # As if the process had been killed after the epoch, and before Spark noted that the batch is done.
    noted = tmp_path / "state" / "streams" / "sales" / "commits" / "0"
    noted.unlink()
    noted.with_name(".0.crc").unlink()
    put(files, "1", sales(10, 5))
    followed.resume()
    session.await_idle()
    assert len(session.table("sales")) == 15
    assert noted.exists()


def test_epochs_that_were_lost_are_given_again(spark: SparkSession, sessions: Any, files: Path, tmp_path: Path) -> None:
    session = sessions()
    session.create_table("sales", SCHEMA)
    put(files, "0", sales(0, 10))
    session.follow("sales", stream(spark, files))
    session.await_idle()
    session.close()
    shutil.copytree(tmp_path / "state", tmp_path / "before")
    session = sessions()
    put(files, "1", sales(10, 5))
    session.follow("sales", stream(spark, files))
    session.await_idle()
    session.close()
    # The directory as it was, with the checkpoint as it is: Spark is ahead by a batch.
    shutil.rmtree(tmp_path / "before" / "streams")
    shutil.copytree(tmp_path / "state" / "streams", tmp_path / "before" / "streams")
    older = sessions("before")
    assert len(older.table("sales")) == 10
    older.follow("sales", stream(spark, files))
    older.await_idle()
    assert len(older.table("sales")) == 15
    older.close()
    # And the other way round: a checkpoint that knows nothing of what was applied is refused.
    shutil.rmtree(tmp_path / "state" / "streams")
    newer = sessions()
    with pytest.raises(hw.InvalidStream, match=r"the list of files that were read.*s\.forget\('sales'\)"):
        newer.follow("sales", stream(spark, files))
    newer.sql("DELETE FROM sales")
    newer.forget("sales")
    newer.follow("sales", stream(spark, files))
    newer.await_idle()
    assert len(newer.table("sales")) == 15


def test_what_cannot_be_taken_is_a_dead_letter(spark: SparkSession, sessions: Any, files: Path) -> None:
    session = sessions(None)
    session.create_table("sales", SCHEMA, key="id")
    good = [json.dumps(row) for row in sales(0, 5)]
    put_lines(files, "0", [*good, '{"id": 7, "brand"', json.dumps({"brand": "x", "price": 1}), good[0]])
    read = spark.readStream.schema(f"{SCHEMA}, _corrupt_record STRING").json(str(files))
    followed = session.follow("sales", read)
    session.await_idle()
    assert sorted(session.table("sales").rows()) == [tuple(row.values()) for row in sales(0, 5)]
    letters = sorted(session.table("sales_dead_letters").rows(), key=lambda letter: letter[2])
    assert [(stream, batch, row) for stream, batch, row, *_ in letters] == [("sales", 0, row) for row in (5, 6, 7)]
    assert {file.rpartition("/")[2] for *_, file, _, _ in letters} == {"0.json"}
    assert letters[0][4:] == ("the record cannot be read", '{"id": 7, "brand"')
    assert letters[1][4] == "column 'id' is in the key and has no value"
    assert letters[2][4].startswith("its key comes more than once in the batch")
    assert json.loads(letters[2][5]) == sales(0, 1)[0]
    assert (followed.progress.rows, followed.progress.dead) == (5, 3)
    followed.stop()

    session.create_table("strict", SCHEMA, key="id")
    failing = session.follow("strict", read, on_error="stop")
    with pytest.raises(hw.InvalidRows, match=r"row 5 of batch 0, from .*0\.json: the record cannot be read"):
        session.await_idle()
    assert failing.progress.state == "failed"
    assert len(session.table("strict")) == 0


def test_debezium_messages(spark: SparkSession, sessions: Any, files: Path) -> None:
    def envelope(op: str, before: Any, after: Any, lsn: int) -> str:
        return json.dumps({"payload": {"op": op, "before": before, "after": after, "source": {"lsn": lsn}}})

    a, b = sales(1, 2)
    put_lines(
        files,
        "0",
        [
            envelope("d", b, None, 4),
            envelope("c", None, a, 1),
            envelope("r", None, b, 2),
            envelope("u", None, {**a, "price": 99}, 3),
            '{"nothing": 1}',
        ],
    )
    session = sessions(None)
    session.create_table("sales", SCHEMA, key="id")
    session.follow("sales", spark.readStream.text(str(files)), mode="cdc")
    session.await_idle()
    assert session.table("sales").rows() == [(1, "b", 99)]
    assert [letter[4:] for letter in session.table("sales_dead_letters").rows()] == [
        ("the record cannot be read", '{"nothing": 1}')
    ]


def test_one_directory_of_rows_that_came_and_one_of_rows_that_went(spark: SparkSession, sessions: Any, files: Path) -> None:
    gone = files.parent / "gone"
    gone.mkdir()
    put(files, "0", sales(0, 10))
    put(gone, "0", sales(3, 2))
    session = sessions(None)
    session.create_table("sales", SCHEMA)
    session.follow("sales", (stream(spark, files), stream(spark, gone)), mode="cdc")
    session.await_idle()
    put(gone, "1", sales(0, 2))
    session.await_idle()
    assert sorted(row[0] for row in session.table("sales").rows()) == [2, 5, 6, 7, 8, 9]


def test_columns_that_are_new_at_the_source_are_taken(spark: SparkSession, sessions: Any, files: Path) -> None:
    session = sessions()
    session.create_table("sales", SCHEMA, key="id")
    totals = session.create_view("totals", TOTALS)
    everything = session.create_view("everything", "SELECT * FROM sales")
    put(files, "0", sales(0, 4))
    session.follow("sales", stream(spark, files)).await_idle()
    session.streams()["sales"].stop()
    wide = ARROW.append(pa.field("colour", pa.string()))
    put(files, "1", [{**row, "colour": "red"} for row in sales(4, 2)], wide)
    session.follow("sales", stream(spark, files, f"{SCHEMA}, colour STRING"))
    session.await_idle()
    assert sorted(row[3] or "" for row in everything.rows()) == ["", "", "", "", "red", "red"]
    assert Counter(totals.rows()) == oracle(spark, files, TOTALS)
    assert session.table("sales").schema.names == ["id", "brand", "price", "colour"]
    session.close()
    again = sessions()
    assert len(again.view("everything").rows()[0]) == 4
    again.insert("sales", [(100, "a", 1, "blue")])
    assert (100, "a", 1, "blue") in again.view("everything").rows()


def test_other_changes_of_columns_stop_with_a_message(spark: SparkSession, sessions: Any, files: Path) -> None:
    session = sessions(None)
    session.create_table("sales", SCHEMA, key="id")
    with pytest.raises(hw.SchemaChanged, match="the stream has no column 'price'"):
        session.follow("sales", stream(spark, files, "id BIGINT, brand STRING"))
    with pytest.raises(hw.SchemaChanged, match="column 'price' of table 'sales' is int32, and in the stream it is string"):
        session.follow("sales", stream(spark, files, "id BIGINT, brand STRING, price STRING"))
    with pytest.raises(hw.InvalidStream, match=r"a DataFrame of spark\.readStream"):
        session.follow("sales", spark.range(1))
    with pytest.raises(hw.InvalidOption, match="mode is one of append, upsert, cdc"):
        session.follow("sales", stream(spark, files), mode="merge")
    with pytest.raises(hw.InvalidOption, match="on_error is one of dead-letter, stop"):
        session.follow("sales", stream(spark, files), on_error="ignore")
    with pytest.raises(hw.UnknownName, match="nothing of a stream 'sales' was applied"):
        session.forget("sales")
    assert session.streams() == {}


def test_a_table_of_the_same_name_begins_anew(spark: SparkSession, sessions: Any, files: Path) -> None:
    session = sessions()
    session.create_table("sales", SCHEMA)
    put(files, "0", sales(0, 4))
    session.follow("sales", stream(spark, files)).await_idle()
    session.streams()["sales"].stop()
    session.drop_table("sales")
    session.create_table("sales", SCHEMA)
    assert session.snapshot.positions == {}
    session.follow("sales", stream(spark, files), mode="append")
    session.await_idle()
    assert len(session.table("sales")) == 4


def test_several_streams_share_a_session(spark: SparkSession, sessions: Any, files: Path) -> None:
    other = files.parent / "other"
    other.mkdir()
    put(files, "0", sales(0, 10))
    put(other, "0", sales(5, 10))
    session = sessions(None)
    session.create_table("sales", SCHEMA, key="id")
    session.create_table("names", "id BIGINT, brand STRING, price INT", key="id")
    joined = session.create_view("joined", "SELECT s.id, n.brand FROM sales s JOIN names n ON s.id = n.id")
    session.follow("sales", stream(spark, files), mode="upsert")
    session.follow("names", stream(spark, other), mode="upsert")
    with pytest.raises(hw.NameTaken, match="stream 'sales' is followed already"):
        session.follow("sales", stream(spark, files))
    session.await_idle()
    assert sorted(row[0] for row in joined.rows()) == [5, 6, 7, 8, 9]
    assert set(session.streams()) == {"sales", "names"}
