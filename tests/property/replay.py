"""Plays a scenario: after every transaction each view must equal Spark's answer, or both must fail.

commit      view ≡ Spark's answer, and the changes since epoch 0 add up to the view
an error    Spark fails as well on some view over the changed tables; the epoch and all views are as they were before
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from oracle import Answer, Oracle, bag_difference, check_changes, collected, difference, rows_of
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from scenario import written

import headwater as hw

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from random_values import Row
    from scenario import Change, Scenario


# PySpark does not translate the errors of all that it runs
SPARK_FAILS = (PySparkException, Py4JError)


def play(spark: SparkSession, scenario: Scenario, record: Callable[[str], object] = lambda _: None) -> None:
    """Raises an AssertionError that shows query, answers and plans at the first difference; records what happens."""
    with closing(hw.connect(spark=spark)) as session:
        Player(session, scenario, record).run()


@dataclass
class Player:
    """One session in which the scenario goes on; `rows` are what the tables should have, `views` those that never failed."""

    session: Any
    scenario: Scenario
    record: Callable[[str], object]
    views: dict[str, str] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=dict)

    @cached_property
    def oracle(self) -> Together:
        text = " ".join(self.scenario.views.values())
        return Together(self.session, {name: query for name, query in self.scenario.views.items() if f" {name} " in text})

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
            self.record(self.session.view(name).maintenance)
        else:
            self._require_failure(query, error)

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
            oracle = Oracle(alone, self.oracle.definitions)
            failing = [name for name, query in self.views.items() if _fails(oracle, query)]
        assert failing, f"the transaction failed, but Spark answers all queries: {type(error).__name__} {error}"
        self.record("failed in both")
        for name in reversed(failing):
            self.session.view(name).drop()
            del self.views[name]

    def _require_failure(self, query: str, error: Exception) -> None:
        try:
            self.oracle.answer(query)
        except AnalysisException as invalid:
            raise AssertionError(f"the grammar composed a query that is invalid in Spark: {query}\n{invalid}") from error
        except SPARK_FAILS:
            self.record("failed in both")
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
        self.oracle.ask_together(list(self.views.values()))
        for name, query in self.views.items():
            answer = self.oracle.answer(query)
            found = unsigned(self.session.view(name).arrow())
            if difference(found, replace(answer, rows=unsigned(answer.rows), ordered_by=None)):
                self.oracle.check(self.session.view(name), query)


class Together(Oracle):
    """An oracle that puts several questions to Spark in one job."""

    def ask_together(self, queries: list[str]) -> None:
        """Asks for the answers that are not known: their union, with columns for each and NULL in those of the others."""
        self.refresh()
        changed = {query: max((self._changed[name] for name in self._mentioned(query)), default=0) for query in queries}
        stale = [query for query in changed if query not in self._answers or self._answers[query][0] < changed[query]]
        if not stale:
            return
        frames = [self._spark.sql(query) for query in stale]
        names = [[f"c{i}_{j}" for j in range(len(frame.columns))] for i, frame in enumerate(frames)]
        tagged = [frame.toDF(*names[i]).selectExpr(f"{i} AS question", "*") for i, frame in enumerate(frames)]
        try:
            rows = collected(reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), tagged))
        except SPARK_FAILS:
            return  # whoever wants the answer of the one that fails will get its error
        for i, (query, frame) in enumerate(zip(stale, frames, strict=True)):
            own = rows.filter(pc.equal(rows.column("question"), i)).select(names[i])
            answer = Answer(frame, pa.Table.from_arrays(own.columns, names=frame.columns), None)
            self._answers[query] = changed[query], answer


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
