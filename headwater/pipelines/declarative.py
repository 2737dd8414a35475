"""Live views in Spark Declarative Pipelines: a decorator that stands beside `@dp.materialized_view`.

    from pyspark import pipelines as dp
    import headwater as hw

    @hw.live_view("state")                         # the directory in which the view is kept up to date
    def totals():
        return "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"

    @dp.materialized_view
    def large():
        return spark.table("totals").where("total > 1000")

To the pipeline, a live view is a temporary view that reads the directory, so that others can build on it. Its query is SQL over
the tables of the directory. If nobody writes to the directory, the view is created, or replaced by what it has become, when the
pipeline is put together; if somebody does, it must be there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.errors import InvalidQuery, UnknownName

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def live_view(
    directory: str | Path, *, name: str | None = None, refresh: str = "auto"
) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """Defines a live view, by a function that gives its query, as a dataset of a declarative pipeline."""

    def define(function: Callable[[], str]) -> Callable[[], str]:
        from pyspark import pipelines

        from headwater.sinks.spark_source import register

        called = function.__name__ if name is None else name
        query = function()
        if not isinstance(query, str):
            raise InvalidQuery(f"the function of live view {called!r} gives its query as SQL, not {type(query).__name__}")
        _keep(directory, called, query, refresh)

        def read() -> Any:  # noqa: ANN401  (a DataFrame of whichever session runs the pipeline)
            from pyspark.sql import SparkSession

            spark = SparkSession.active()
            register(spark)
            return spark.read.format("headwater").load(f"{directory}/{called}")

        read.__name__ = called
        pipelines.temporary_view(name=called)(read)
        return function

    return define


def _keep(directory: str | Path, name: str, query: str, refresh: str) -> None:
    """Creates the view, unless somebody else writes to the directory."""
    from headwater.session import connect
    from headwater.sinks.directory import Directory
    from headwater.store.inspecting import writer
    from headwater.store.opening import disk_at

    if writer(disk_at(directory)) is not None:
        Directory(str(directory)).entry(name)
        return
    with connect(directory) as session:
        known = session.snapshot.views.get(name.lower())
        if name.lower() in session.snapshot.tables:
            raise UnknownName(f"{name!r} is a table of {str(directory)!r}, not a view")
        if known is None or known.query.text is None or known.query.text.split() != query.split():
            session.create_view(name, query, refresh=refresh, replace=known is not None)
