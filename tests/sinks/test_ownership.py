"""An export writes to what it has made itself, or was told to replace: all else is refused, and stays as it is."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from benchmarks.postgres_server import Server

    Connect = Callable[[str], hw.Session]


@pytest.fixture
def connect(spark: SparkSession, tmp_path: Path) -> Iterator[Connect]:
    """A session on a directory of that name, with two views of the same columns."""
    sessions: list[hw.Session] = []

    def opened(name: str) -> hw.Session:
        session = hw.connect(tmp_path / name, spark=spark)
        sessions.append(session)
        if "t" not in session.tables():
            session.create_table("t", "id BIGINT, x BIGINT", key="id")
            session.create_view("v", "SELECT id, x FROM t")
            session.create_view("w", "SELECT id, x FROM t WHERE x > 1")
            session.insert("t", [(1, 1), (2, 2)])
        return session

    yield opened
    for session in sessions:
        session.close()


def content(folder: Path) -> Any:
    """Names and bytes of everything in a directory, or the bytes of a file."""
    if folder.is_file():
        return folder.read_bytes()
    return {path.relative_to(folder): path.is_file() and path.read_bytes() for path in folder.rglob("*")}


FORMS: dict[str, dict[str, Any]] = {
    "parquet": {"format": "parquet"},
    "parquet of content": {"format": "parquet", "of": "content"},
    "csv": {"format": "csv"},
    "json": {"format": "json"},
    "delta": {"format": "delta", "key": "id"},
    "delta of changes": {"format": "delta"},
}


def rows(folder: Path, options: dict[str, Any]) -> list[tuple[int, int]]:
    """What is at a target of which the changes only come."""
    if options["format"] == "delta":
        deltalake = pytest.importorskip("deltalake")
        table = pa.table(deltalake.DeltaTable(str(folder)).to_pyarrow_table())
    else:
        table = pa.concat_tables(map(pq.read_table, sorted(folder.glob("epoch-*.parquet"))))
    return sorted(zip(table["id"].to_pylist(), table["x"].to_pylist(), strict=True))


@pytest.mark.parametrize("options", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("there", ["a directory", "a file", "a Delta table"])
def test_what_others_have_made_is_left_alone(connect: Connect, tmp_path: Path, options: dict[str, Any], there: str) -> None:
    deltalake = pytest.importorskip("deltalake")
    folder = tmp_path / "out"
    if there == "a file":
        folder.write_text("mine")
    elif there == "a directory":
        (folder / "year=2024").mkdir(parents=True)
        pq.write_table(pa.table({"id": [7]}), folder / "year=2024" / "part-0.parquet")
        # Even by the name of an export's own files.
        pq.write_table(pa.table({"id": [7]}), folder / "epoch-000000000009.parquet")
    else:
        deltalake.write_deltalake(str(folder), pa.table({"id": [7]}))
    before, session = content(folder), connect("state")
    with pytest.raises(
        hw.InvalidTarget, match=r"nothing was changed. Give another target, or write_to\(…, replace=True\)"
    ) as error:
        session.view("v").write_to(folder, **options)
    assert error.value.code == "INVALID_TARGET"
    assert content(folder) == before
    assert session.exports() == {}
    session.view("v").write_to(folder, **options, replace=True).await_idle()
    if options["format"] in ("parquet", "delta"):
        assert rows(folder, options) == [(1, 1), (2, 2)]


@pytest.mark.parametrize("options", FORMS.values(), ids=FORMS)
def test_another_export_is_foreign_and_goes_on_with_its_own(connect: Connect, tmp_path: Path, options: dict[str, Any]) -> None:
    folder, session = tmp_path / "out", connect("state")
    export = session.view("v").write_to(folder, **options)
    export.await_idle()
    before, another = content(folder), connect("another state")
    others = [
        (session.view("w"), {"name": "w"}),
        (session.view("w"), {"name": "of the same name"}),
        (another.view("v"), {}),
    ]
    for view, name in others:
        with pytest.raises(hw.InvalidTarget, match="was not made by this export of this view"):
            view.write_to(folder, **options, **name)
    assert content(folder) == before
    session.close()
    session = connect("state")
    session.insert("t", [(3, 3)])
    again = session.view("v").write_to(folder, **options, replace=True)
    again.await_idle()
    assert again.progress.restarted is None, "one's own is gone on with"
    another.view("w").write_to(folder, **options, replace=True).await_idle()
    if options["format"] in ("parquet", "delta"):
        assert rows(folder, options) == [(2, 2)]
    session.insert("t", [(4, 4)])
    with pytest.raises(hw.ExportFailed, match="was given to another export"):
        again.await_idle()
    if options["format"] in ("parquet", "delta"):
        assert rows(folder, options) == [(2, 2)]


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("form", ["parquet", "delta"])
@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("another state", "is a directory of Headwater's"),
        ("another state/log", "is in .* a directory of Headwater's"),
        ("state/copies/of v", "is in .* a directory of Headwater's"),
        ("link", "is a directory of Headwater's"),
        ("around", "has a directory of Headwater's in it|has other files"),
        (".", "has a directory of Headwater's in it|has other files"),
    ],
)
def test_a_directory_of_headwater_is_never_replaced(
    connect: Connect, tmp_path: Path, target: str, why: str, form: str, *, replace: bool
) -> None:
    session = connect("state")
    connect("another state").close()
    (tmp_path / "around").mkdir()
    connect("around/the state").close()
    (tmp_path / "link").symlink_to(tmp_path / "another state")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(hw.InvalidTarget, match=why):
        session.view("v").write_to(tmp_path / target, format=form, replace=replace, name="e")
    assert sorted(tmp_path.rglob("*")) == before
    for name in ("another state", "around/the state"):
        assert connect(name).view("v").rows()


@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_what_is_neither_file_nor_directory_is_no_target(connect: Connect, tmp_path: Path, form: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(hw.InvalidTarget, match="neither a directory nor a file"):
        connect("state").view("v").write_to(pipe, format=form, replace=True)
    assert pipe.is_fifo()


def test_a_table_of_postgresql_that_others_have_made_is_left_alone(connect: Connect, postgres: Server, tmp_path: Path) -> None:
    psycopg = pytest.importorskip("psycopg")
    session, name = connect("state"), tmp_path.name

    def asked(statement: str) -> list[Any]:
        with psycopg.connect(postgres.address) as connection:
            cursor = connection.execute(statement)
            return [] if cursor.description is None else cursor.fetchall()

    options: dict[str, Any] = {"table": name, "key": "id"}
    asked(f'CREATE TABLE "{name}" (id BIGINT PRIMARY KEY, x BIGINT)')
    asked(f'INSERT INTO "{name}" SELECT i, i FROM generate_series(1, 1000) i')
    with pytest.raises(hw.InvalidTarget, match="is a table, and was not made by this export") as error:
        session.view("v").write_to(postgres.address, **options)
    assert error.value.code == "INVALID_TARGET"
    assert asked(f'SELECT COUNT(*) FROM "{name}"') == [(1000,)]
    session.view("v").write_to(postgres.address, **options, replace=True).await_idle()
    assert sorted(asked(f'SELECT id, x FROM "{name}"')) == [(1, 1), (2, 2)]
    another = connect("another state")
    for view in (session.view("w"), another.view("v")):
        with pytest.raises(hw.InvalidTarget, match="is a table, and was not made by this export"):
            view.write_to(postgres.address, **options, name=None if view.name == "v" else "w")
    session.close()
    session = connect("state")
    session.insert("t", [(3, 3)])
    export = session.view("v").write_to(postgres.address, **options)
    export.await_idle()
    assert sorted(asked(f'SELECT id, x FROM "{name}"')) == [(1, 1), (2, 2), (3, 3)]
    assert export.progress.restarted is None
    another.view("w").write_to(postgres.address, **options, replace=True).await_idle()
    session.insert("t", [(4, 4)])
    with pytest.raises(hw.ExportFailed, match="was given to another export"):
        export.await_idle()
    assert asked(f'SELECT id, x FROM "{name}"') == [(2, 2)]
    # One that is made anew by its name is not ours any more.
    asked(f'DROP TABLE "{name}"')
    asked(f'CREATE TABLE "{name}" (id BIGINT PRIMARY KEY, x BIGINT)')
    with pytest.raises(hw.InvalidTarget, match="was not made by this export"):
        another.view("w").write_to(postgres.address, **options, name="w again")
    asked(f'DROP TABLE "{name}"')
    asked(f'CREATE VIEW "{name}" AS SELECT 1 AS id')
    with pytest.raises(hw.InvalidTarget, match="is no table"):
        session.view("w").write_to(postgres.address, **options, replace=True)
    asked(f'DROP VIEW "{name}"')


def test_dependent_views_of_postgresql_are_named(connect: Connect, postgres: Server, tmp_path: Path) -> None:
    psycopg = pytest.importorskip("psycopg")
    session, name = connect("state"), tmp_path.name
    export = session.view("v").write_to(postgres.address, table=name, key="id")
    export.await_idle()
    with psycopg.connect(postgres.address) as connection:
        connection.execute(f'CREATE VIEW "{name} above" AS SELECT x FROM "{name}"')
    session.create_view("v", "SELECT id, CAST(x AS STRING) AS x FROM t", replace=True)
    with pytest.raises(hw.ExportFailed, match="cannot be given the columns of the view") as error:
        export.await_idle()
    assert f"{name} above" in str(error.value)
    with psycopg.connect(postgres.address) as connection:
        assert sorted(connection.execute(f'SELECT id, x FROM "{name}"').fetchall()) == [(1, 1), (2, 2)]
        connection.execute(f'DROP VIEW "{name} above"')
    export.resume()
    export.await_idle()
    with psycopg.connect(postgres.address) as connection:
        assert sorted(connection.execute(f'SELECT id, x FROM "{name}"').fetchall()) == [(1, "1"), (2, "2")]
        connection.execute(f'DROP TABLE "{name}"')


def test_what_a_session_without_a_directory_wrote_no_other_goes_on_with(spark: SparkSession, tmp_path: Path) -> None:
    for replace in (False, True):
        with hw.connect(spark=spark) as session:
            session.create_table("t", "id BIGINT")
            view = session.create_view("v", "SELECT id FROM t")
            session.insert("t", [(1,)])
            view.write_to(tmp_path / "out", format="parquet", replace=replace).await_idle()
        with hw.connect(spark=spark) as session:
            session.create_table("t", "id BIGINT")
            view = session.create_view("v", "SELECT id FROM t")
            with pytest.raises(hw.InvalidTarget, match="was not made by this export"):
                view.write_to(tmp_path / "out", format="parquet")
    assert Counter(path.suffix for path in (tmp_path / "out").glob("epoch-*")) == {".parquet": 1}


def test_a_damaged_note_of_a_directory_is_noticed(connect: Connect, tmp_path: Path) -> None:
    session, folder = connect("state"), tmp_path / "out"
    session.view("v").write_to(folder, format="parquet").await_idle()
    session.close()
    note = folder / ".headwater-export.json"
    whole = note.read_bytes()
    view = connect("state").view("v")
    for damaged in (b"", whole[:-3], whole.replace(b"changes", b"content"), b"{}"):
        note.write_bytes(damaged)
        with pytest.raises(hw.DamagedFile, match="headwater-export"):
            view.write_to(folder, format="parquet")
    note.write_bytes(whole)
    view.write_to(folder, format="parquet").await_idle()
