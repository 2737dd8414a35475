"""Whatever Spark reads as a stream can be followed: each format that comes with Spark, once, and compared with Spark."""

from __future__ import annotations

import socket
from collections import Counter
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

import headwater as hw

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow
COLUMNS = "id BIGINT, name STRING, price DECIMAL(8, 2), day DATE"
VIEW = "SELECT name, COUNT(*) AS n, SUM(price) AS total, MAX(day) AS last FROM t GROUP BY name"


@pytest.fixture
def session(spark: SparkSession, tmp_path: Path) -> Iterator[hw.Session]:
    with hw.connect(tmp_path / "state", spark=spark) as session:
        yield session


@pytest.mark.parametrize(("form", "options"), [("csv", {"header": "true"}), ("json", {}), ("parquet", {}), ("orc", {})])
def test_files_in_columns(spark: SparkSession, session: hw.Session, tmp_path: Path, form: str, options: dict[str, str]) -> None:
    rows = spark.range(100).selectExpr(
        "id",
        "CAST(id % 7 AS STRING) AS name",
        "CAST(id / 4 AS DECIMAL(8, 2)) AS price",
        "DATE'2024-02-29' + CAST(id AS INT) AS day",
    )
    require_followed(spark, session, rows.repartition(3), tmp_path / "files", form, options)


def test_xml(spark: SparkSession, session: hw.Session, tmp_path: Path) -> None:
    rows = spark.sql(
        "SELECT * FROM VALUES (1L, 'a', 1.5BD, DATE'2024-02-29'), (2L, '<&>', NULL, NULL) AS t (id, name, price, day)"
    )
    require_followed(spark, session, rows, tmp_path / "files", "xml", {"rowTag": "row"})


def require_followed(  # noqa: PLR0917
    spark: SparkSession, session: hw.Session, rows: object, folder: Path, form: str, options: dict[str, str]
) -> None:
    """Files of the rows are followed, some of them before and some after the stream has begun."""
    session.create_table("t", COLUMNS, key="id")
    session.create_view("v", VIEW)
    rows.write.format(form).options(**options).save(str(folder))  # type: ignore[attr-defined]
    stream = spark.readStream.schema(COLUMNS).format(form).options(**options)
    session.follow("t", stream.load(str(folder)))
    session.await_idle()
    more = spark.sql("SELECT 1000L AS id, 'more' AS name, CAST(9 AS DECIMAL(8, 2)) AS price, DATE'2030-01-01' AS day")
    more.write.format(form).options(**options).mode("append").save(str(folder))
    session.await_idle()
    spark.read.schema(COLUMNS).format(form).options(**options).load(str(folder)).createOrReplaceTempView("t")
    assert Counter(session.view("v").rows()) == Counter(map(tuple, spark.sql(VIEW).collect()))
    assert session.table("t_dead_letters").rows() == []


def test_text(spark: SparkSession, session: hw.Session, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "1.txt").write_text("to be or not\nto be\n", encoding="utf-8")
    session.create_table("lines", "value STRING")
    session.create_view(
        "words", "SELECT word, COUNT(*) AS n FROM (SELECT explode(split(value, ' ')) AS word FROM lines) GROUP BY word"
    )
    session.follow("lines", spark.readStream.text(str(folder)))
    session.await_idle()
    assert Counter(session.view("words").rows()) == Counter({("to", 2): 1, ("be", 2): 1, ("or", 1): 1, ("not", 1): 1})


def test_rate(spark: SparkSession, session: hw.Session) -> None:
    session.create_table("ticks", "timestamp TIMESTAMP, value BIGINT", key="value")
    view = session.create_view("sums", "SELECT COUNT(*) AS n, SUM(value) AS total, MAX(value) AS last FROM ticks")
    stream = session.follow("ticks", spark.readStream.format("rate").option("rowsPerSecond", 100).load())
    while not (view.rows()[0][0] > 200):
        assert stream.progress.state != "failed", stream.progress.error
        sleep(0.05)
    stream.stop()
    ((n, total, last),) = view.rows()
    assert (total, last) == (n * (n - 1) // 2, n - 1)


def test_socket(spark: SparkSession, session: hw.Session) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            # Spark connects once to see that somebody is there, and then to read.
            for _ in range(2):
                connection, _address = server.accept()
                with connection:
                    connection.sendall(b"3\n4\nfive\n")
                    connection.recv(1)

        Thread(target=serve, daemon=True).start()
        lines = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", server.getsockname()[1]).load()
        session.create_table("numbers", "n BIGINT")
        view = session.create_view("total", "SELECT COUNT(*) AS c, SUM(n) AS s FROM numbers")
        stream = session.follow("numbers", lines.selectExpr("TRY_CAST(value AS BIGINT) AS n"))
        while view.rows() != [(3, 7)]:
            assert stream.progress.state != "failed", stream.progress.error
            sleep(0.05)
        stream.stop()


def test_connectors_that_are_not_there(spark: SparkSession) -> None:
    """Avro and Kafka need packages of Spark's; once these are there, this fails, and they are to be tested."""
    for form in ("avro", "kafka"):
        with pytest.raises(PySparkException, match=r"DATA_SOURCE_NOT_FOUND|Failed to find data source|deploy"):
            spark.readStream.format(form).schema("a INT").load("nowhere")
