"""Plays a scenario: after every transaction each view must equal Spark's answer, or both must fail.

commit      view ≡ Spark's answer, and the changes since epoch 0 add up to the view
an error    Spark fails as well on some view over the changed tables; the epoch and all views are as they were before
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import event
from oracle import Answer, Oracle, bag_difference, check_changes, difference, rows_of
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from scenario import written

import headwater as hw

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from random_values import Row
    from scenario import Change, Scenario


# PySpark does not translate the errors of all that it runs
SPARK_FAILS = (PySparkException, Py4JError)


def play(spark: SparkSession, scenario: Scenario) -> None:
    """Raises an AssertionError that shows query, answers and plans at the first difference."""
    with closing(hw.connect(spark=spark)) as session:
        Player(session, scenario).run()


@dataclass
class Player:
    """One session in which the scenario goes on; `rows` are what the tables should have, `views` those that never failed."""

    session: Any
    scenario: Scenario
    views: dict[str, str] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=dict)

    def run(self) -> None:
        for name, table in self.scenario.tables.items():
            self.session.create_table(name, table.ddl, key=table.key)
            self.session.insert(name, table.rows)
            self.rows[name] = list(table.rows)
        for name, query in self.scenario.views.items():
            if not any(f" {lost} " in f"{query} " for lost in self.scenario.views if lost not in self.views):
                self._create(name, query)
        self._compare()
        for transaction in self.scenario.transactions:
            self._commit(transaction)
            self._compare()
        for name in self.views:
            view = self.session.view(name)
            check_changes(view.arrow().slice(0, 0), view, 0)

    def _create(self, name: str, query: str) -> None:
        error = self._attempt(lambda: self.session.create_view(name, query))
        if error is None:
            self.views[name] = query
            event(self.session.view(name).maintenance)
        else:
            self._require_failure(Oracle(self.session, self.views), query, error)

    def _commit(self, transaction: list[Change]) -> None:
        error = self._attempt(lambda: self._apply(self.session, transaction))
        if error is not None:
            self._drop_failing(transaction, error)
            self._apply(self.session, transaction)
        for change in transaction:
            self.rows[change.table] = changed(self.rows[change.table], change)

    def _attempt(self, act: Callable[[], object]) -> hw.HeadwaterError | None:
        """The error that the act raises; then epoch and views must be as they were."""
        epoch = self.session.epoch
        before = {name: rows_of(self.session.view(name).arrow()) for name in self.views}
        try:
            act()
        except hw.HeadwaterError as error:
            failure = error
        else:
            return None
        if self.session.epoch != epoch:
            raise AssertionError(f"the epoch moved on, though there was an error: {failure}")
        for name, rows in before.items():
            surplus, missing = bag_difference(rows_of(self.session.view(name).arrow()), rows)
            if surplus or missing:
                raise AssertionError(f"{name} has new rows {surplus}, and lost {missing}, though there was an error: {failure}")
        return failure

    def _apply(self, session: Any, transaction: list[Change]) -> None:
        with session.transaction() as changes:
            for change in transaction:
                getattr(changes, change.action)(change.table, change.rows)

    def _drop_failing(self, transaction: list[Change], error: Exception) -> None:
        """Drops the views that fail in Spark, too, over the changed tables; there must be one."""
        with closing(hw.connect(spark=self.session.spark)) as alone:
            for name, table in self.scenario.tables.items():
                alone.create_table(name, table.ddl, key=table.key)
                alone.insert(name, self.session.table(name).arrow())
            self._apply(alone, transaction)
            oracle = Oracle(alone, self._read_by_others())
            failing = [name for name, query in self.views.items() if _fails(oracle, query)]
        assert failing, f"the transaction failed, but Spark answers all queries: {type(error).__name__} {error}"
        event("failed in both")
        for name in reversed(failing):
            self.session.view(name).drop()
            del self.views[name]

    def _require_failure(self, oracle: Oracle, query: str, error: Exception) -> None:
        try:
            oracle.answer(query)
        except AnalysisException as invalid:
            raise AssertionError(f"the grammar composed a query that is invalid in Spark: {query}\n{invalid}") from error
        except SPARK_FAILS:
            event("failed in both")
            return
        raise AssertionError(f"Spark answers this query, the view was refused: {query}\n{type(error).__name__} {error}")

    # -- comparing

    def _compare(self) -> None:
        for name, rows in self.rows.items():
            contents = self.session.table(name).arrow()
            columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(contents.schema.types)]
            expected = pa.Table.from_arrays(columns, schema=contents.schema)
            surplus, missing = bag_difference(rows_of(contents), rows_of(expected))
            assert not surplus + missing, f"table {name} has rows {surplus} that it should not, and lacks {missing}"
        if not self.views:
            return
        oracle = Oracle(self.session, self._read_by_others())
        try:
            answers = _answers(oracle, self.views)
        except SPARK_FAILS:
            answers = {name: oracle.answer(query) for name, query in self.views.items()}
        for name, answer in answers.items():
            found = unsigned(self.session.view(name).arrow())
            if difference(found, replace(answer, rows=unsigned(answer.rows))):
                oracle.check(self.session.view(name), self.views[name])
                raise AssertionError(
                    f"Spark has several answers to this query, which the grammar must not compose: {self.views[name]}"
                )

    def _read_by_others(self) -> dict[str, str]:
        text = " ".join(self.views.values())
        return {name: query for name, query in self.views.items() if f" {name} " in text}


def changed(rows: list[Row], change: Change) -> list[Row]:
    """The rows of a table after a change; the key of an upsert is the first column."""
    if change.action == "insert":
        return rows + change.rows
    width = None if change.action == "delete" else 1
    left = list(rows)
    for row in change.rows:
        place = next((i for i, old in enumerate(left) if written(old[:width]) == written(row[:width])), None)
        if place is not None:
            del left[place]
    return left + (change.rows if change.action == "upsert" else [])


def unsigned(table: pa.Table) -> pa.Table:
    """The table with 0.0 for −0.0: which of the two is the least, or first, of a group of both, SQL leaves open."""
    columns = [
        pc.add(column, 0.0).cast(column.type) if pa.types.is_floating(column.type) else column for column in table.columns
    ]
    return pa.Table.from_arrays(columns, names=table.column_names) if columns else table


def _fails(oracle: Oracle, query: str) -> bool:
    try:
        oracle.answer(query)
    except SPARK_FAILS:
        return True
    return False


def _answers(oracle: Oracle, views: dict[str, str]) -> dict[str, Answer]:
    """Spark's answers to all queries, as one job: their union, with columns for each and NULL in those of the others."""
    spark = oracle._at_this_epoch()
    frames = {name: spark.sql(query) for name, query in views.items()}
    parts = [frame.toDF(*_own_names(name, frame)) for name, frame in frames.items()]
    tagged = [part.selectExpr(f"'{name}' AS view", "*") for name, part in zip(frames, parts, strict=True)]
    rows = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), tagged).toArrow()
    answers = {}
    for name, frame in frames.items():
        own = rows.filter(pc.equal(rows.column("view"), name)).select(_own_names(name, frame))
        answers[name] = Answer(frame, pa.Table.from_arrays(own.columns, names=frame.columns), None)
    return answers


def _own_names(name: str, frame: DataFrame) -> list[str]:
    return [f"{name}_{i}" for i in range(len(frame.columns))]
