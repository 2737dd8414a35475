"""Spark as the judge: the same queries over the same rows, from scratch, to compare both answers and times.

Spark gets every advantage: its tables are in memory, the better of two runs counts, and no row is fetched while time is taken.
It reads the books of the shop, and nothing of Headwater takes part, not even in comparing the answers.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from headwater.demo.wares import WARES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from headwater.demo.shop import Shop
    from headwater.demo.views import Question


class Judge:
    """Plain Spark in a session of its own."""

    def __init__(self, spark: SparkSession, questions: Sequence[Question]) -> None:
        self._spark = spark.newSession()
        self._spark.conf.set("spark.sql.session.timeZone", "UTC")
        self._questions = questions
        self._tables: list[DataFrame] = []

    def learn(self, shop: Shop) -> None:
        """Takes the shop's tables as they are now into Spark's memory."""
        for table in self._tables:
            table.unpersist()
        self._tables = [self._table(shop, name) for name in WARES]
        for question in self._questions:
            self._spark.sql(question.query).createOrReplaceTempView(question.name)

    def seconds(self, question: Question) -> float:
        """How long Spark takes to compute a view."""
        return min(self._run(question), self._run(question))

    def answer(self, question: Question) -> pa.Table:
        return self._spark.sql(question.query).toArrow()

    def _run(self, question: Question) -> float:
        started = perf_counter()
        self._spark.sql(question.query).write.format("noop").mode("overwrite").save()
        return perf_counter() - started

    def _table(self, shop: Shop, name: str) -> DataFrame:
        frame = self._spark.createDataFrame(shop.table(name), WARES[name].columns).cache()
        frame.createOrReplaceTempView(name)
        frame.count()
        return frame


def difference(ours: pa.Table, theirs: pa.Table) -> pa.Table:
    """The rows that one answer has more often than the other, in the column `more`: +n of them in ours, −n in theirs."""
    if ours.schema.names != theirs.schema.names or ours.schema.types != theirs.schema.types:
        raise TypeError(f"The view has the columns\n{ours.schema}\nand Spark's answer has\n{theirs.schema}")
    marked = [table.append_column("more", pa.repeat(sign, len(table))) for table, sign in ((ours, 1), (theirs, -1))]
    merged = pa.concat_tables(table.cast(marked[0].schema) for table in marked)
    counted = merged.group_by(ours.column_names).aggregate([("more", "sum")]).rename_columns(marked[0].column_names)
    return counted.filter(pc.field("more") != 0)
