"""Runs the fixtures of `tests/sql`: every query is a live view that must equal Spark after every change of its folder.

A folder is one set of tables. Its `tables.sql` holds CREATE TABLE and INSERT statements, then the changes, each headed by
`-- transaction: what happens`; a transaction may have several statements and is one epoch. `CREATE LIVE VIEW` before the
first transaction makes a view that queries may read. All other files of the folder hold queries, each headed by

    -- stateful: what it shows                 the maintenance class it must get, and its name in the reports
    -- gap: NOT_SUPPORTED until it is built    only while it fails: the error's code, or DIFFERS; fails once it passes

A statement ends with a semicolon at the end of a line. To add a test, add a query: there is nothing else to do.
All queries of a folder are maintained at once by one session, so a change is applied once, whatever the number of queries.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from oracle import Oracle, check_changes

import headwater as hw

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import SparkSession

FOLDERS = sorted(path.parent for path in (Path(__file__).parent / "sql").glob("*/tables.sql"))
CLASSES = ("linear", "stateful", "touched groups", "recomputed")
DIFFERS = "DIFFERS"

pytestmark = pytest.mark.timeout(1800)


@dataclass(frozen=True)
class Query:
    """One query of a fixture file."""

    title: str
    file: str
    maintenance: str
    text: str
    gap: str | None

    @property
    def name(self) -> str:
        return re.sub(r"[^a-z0-9]+", "_", f"{self.file} {self.title}".lower()).strip("_")


@dataclass(frozen=True)
class Folder:
    """What a folder's `tables.sql` and query files say."""

    setup: tuple[str, ...]
    transactions: tuple[tuple[str, tuple[str, ...]], ...]
    queries: tuple[Query, ...]


@dataclass(frozen=True)
class Failure:
    """The first thing that went wrong with a query: an error's code (or DIFFERS), and when, and what."""

    code: str
    text: str


@cache
def read_folder(path: Path) -> Folder:
    head, *changes = re.split(r"^-- transaction: ", (path / "tables.sql").read_text("utf-8"), flags=re.MULTILINE)
    transactions = tuple((change.split("\n", 1)[0], statements(change.split("\n", 1)[1])) for change in changes)
    files = sorted(file for file in path.glob("*.sql") if file.name != "tables.sql")
    return Folder(statements(head), transactions, tuple(query for file in files for query in read_queries(file)))


def statements(text: str) -> tuple[str, ...]:
    code = re.sub(r"^--.*\n?", "", text, flags=re.MULTILINE)
    return tuple(part.strip() for part in re.split(r";[ \t]*(?:\n|\Z)", code) if part.strip())


def read_queries(file: Path) -> list[Query]:
    queries = []
    for block in re.split(r"\n\s*\n(?=-- )", file.read_text("utf-8").strip()):
        header = re.match(r"-- ([a-z ]+): (.+)\n(?:-- gap: (.+)\n)?", block)
        if header is None or header[1] not in CLASSES:
            raise ValueError(
                f"{file}: a query starts with a line such as '-- stateful: what it shows', not with {block[:80]!r}"
            )
        (text,) = statements(block)
        queries.append(Query(header[2], file.stem, header[1], text, header[3]))
    return queries


@dataclass
class Replay:
    """One folder played through: every view after every transaction, and what failed first for each query."""

    spark: SparkSession
    folder: Folder
    queries: dict[str, Query]
    failures: dict[str, Failure] = field(default_factory=dict)
    classes: dict[str, str] = field(default_factory=dict)
    beginnings: dict[str, tuple[int, pa.Table]] = field(default_factory=dict)

    def run(self) -> None:
        with closing(hw.connect(spark=self.spark)) as session:
            definitions = {}
            for statement in self.folder.setup:
                session.sql(statement)
                live = re.match(r"CREATE LIVE VIEW (\S+) AS(.*)", statement, re.DOTALL)
                definitions |= {live[1]: live[2]} if live else {}
            oracle = Oracle(session, definitions)
            for name, query in self.queries.items():
                self._create(session, name, query)
            self._compare(session, oracle, "at creation")
            for title, changes in self.folder.transactions:
                self._apply(session, title, changes)
                self._compare(session, oracle, f"after the transaction {title!r}")
            self._replay_changes(session)

    def _alive(self) -> list[str]:
        return [name for name in self.queries if name not in self.failures]

    def _create(self, session: Any, name: str, query: Query) -> None:
        try:
            view = session.create_view(name, query.text)
            self.classes[name] = view.stats()["class"]
            self.beginnings[name] = session.epoch, view.arrow()
        except Exception as error:  # noqa: BLE001 one query's failure must not take down the others
            self._fail(name, error, "at creation")

    def _compare(self, session: Any, oracle: Oracle, moment: str) -> None:
        oracle.refresh()

        def compare(name: str) -> None:
            try:
                oracle.check(session.view(name), self.queries[name].text)
            except Exception as error:  # noqa: BLE001 same
                self._fail(name, error, moment)

        # Spark plans a query in one thread, and planning is most of what a small one costs
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(compare, self._alive()))

    def _apply(self, session: Any, title: str, changes: tuple[str, ...]) -> None:
        moment = f"in the transaction {title!r}"
        try:
            _transact(session, changes)
        except Exception as error:  # noqa: BLE001 same
            tables = {name: table.arrow() for name, table in session.tables().items()}
            for name in self._alive():
                self._apply_alone(tables, name, changes, moment)
            for name in self.failures:
                if name in session.views():
                    session.view(name).drop()
            try:
                _transact(session, changes)
            except Exception:  # noqa: BLE001 no view is to blame alone
                for name in self._alive():
                    self._fail(name, error, moment)

    def _apply_alone(self, tables: dict[str, pa.Table], name: str, changes: tuple[str, ...], moment: str) -> None:
        """Find out whether this view makes the transaction fail, in a session that has no other."""
        with closing(hw.connect(spark=self.spark)) as alone:
            for statement in self.folder.setup:
                if statement.startswith("CREATE"):
                    alone.sql(statement)
            with alone.transaction() as transaction:
                for table, rows in tables.items():
                    transaction.insert(table, rows)
            try:
                alone.create_view(name, self.queries[name].text)
                _transact(alone, changes)
            except Exception as error:  # noqa: BLE001 same
                self._fail(name, error, moment)

    def _fail(self, name: str, error: Exception, moment: str) -> None:
        code = DIFFERS if isinstance(error, AssertionError) else str(getattr(error, "code", type(error).__name__))
        self.failures.setdefault(name, Failure(code, f"{moment}: {code}\n{error}"))

    def _replay_changes(self, session: Any) -> None:
        for name, (epoch, before) in self.beginnings.items():
            if name not in self.failures:
                try:
                    check_changes(before, session.view(name), epoch)
                except Exception as error:  # noqa: BLE001 same
                    self._fail(name, error, "when its changes are replayed")


def _transact(session: Any, changes: tuple[str, ...]) -> None:
    with session.transaction() as transaction:
        for change in changes:
            transaction.sql(change)


@pytest.fixture(scope="module")
def replay(request: pytest.FixtureRequest, spark: SparkSession) -> Callable[[Path], Replay]:
    """Plays a folder through, once, with the queries that this run selects."""

    @cache
    def play(path: Path) -> Replay:
        chosen = [
            item.callspec.params for item in request.session.items if item.path == Path(__file__) and hasattr(item, "callspec")
        ]
        names = {params["query"].name: params["query"] for params in chosen if params["path"] == path}
        played = Replay(spark, read_folder(path), names)
        played.run()
        return played

    return play


@pytest.mark.parametrize(
    ("path", "query"),
    [pytest.param(path, query, id=f"{path.name}-{query.name}") for path in FOLDERS for query in read_folder(path).queries],
)
def test_query(path: Path, query: Query, replay: Callable[[Path], Replay]) -> None:
    played = replay(path)
    failure = played.failures.get(query.name)
    if query.gap is not None:
        code, _, reason = query.gap.partition(" ")
        assert failure is not None, f"the gap is closed: take '-- gap: {query.gap}' away"
        assert failure.code == code, failure.text
        pytest.xfail(f"{code}: {reason}")
    assert failure is None, failure.text
    assert played.classes[query.name] == query.maintenance


def test_names_are_unique() -> None:
    for path in FOLDERS:
        names = [query.name for query in read_folder(path).queries]
        assert len(names) == len(set(names))
