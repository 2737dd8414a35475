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

`spark-pipelines` talks to Spark through Spark Connect, which does not show plans. There, the view is created by a process
beside it, with a Spark of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.errors import HeadwaterError, InvalidPipeline, InvalidQuery, UnknownName

if TYPE_CHECKING:
    from collections.abc import Callable

# By these, a process is told to use Spark Connect.
_CONNECT = ("SPARK_CONNECT_", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "PYSPARK_REMOTE_")


def live_view(
    directory: str | Path, *, name: str | None = None, refresh: str = "auto"
) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """Defines a live view, by a function that gives its query, as a dataset of a declarative pipeline."""

    def define(function: Callable[[], str]) -> Callable[[], str]:
        from pyspark import pipelines
        from pyspark.sql import SparkSession

        from headwater.sinks.spark_source import planned

        called = function.__name__ if name is None else name
        query = function()
        if not isinstance(query, str):
            raise InvalidQuery(f"the function of live view {called!r} gives its query as SQL, not {type(query).__name__}")
        place = Path(directory).absolute()
        _keep(place, called, query, refresh)

        # Not within the function below: when the pipeline calls that, it takes nothing that Spark would have to look at.
        rows = planned(SparkSession.active(), str(place), called)

        def read() -> Any:  # noqa: ANN401  (a DataFrame of whichever session runs the pipeline)
            return rows

        read.__name__ = called
        pipelines.temporary_view(name=called)(read)
        return function

    return define


def _keep(directory: Path, name: str, query: str, refresh: str) -> None:
    """Creates the view, unless it is there or somebody else writes to the directory."""
    from pyspark.sql.utils import is_remote

    from headwater.sinks.directory import Directory
    from headwater.store.inspecting import writer
    from headwater.store.opening import disk_at

    if writer(disk_at(directory)) is not None:
        Directory(str(directory)).entry(name)
    elif is_remote():
        _create_beside(directory, name, query, refresh)
    else:
        _create(directory, name, query, refresh)


def _create(directory: Path, name: str, query: str, refresh: str) -> None:
    from headwater.session import connect

    with connect(directory) as session:
        known = session.snapshot.views.get(name.lower())
        if name.lower() in session.snapshot.tables:
            raise UnknownName(f"{name!r} is a table of {str(directory)!r}, not a view")
        if known is None or known.query.text is None or known.query.text.split() != query.split():
            session.create_view(name, query, refresh=refresh, replace=known is not None)


def _create_beside(directory: Path, name: str, query: str, refresh: str) -> None:
    """The same in a process in which Spark is not Spark Connect."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(_CONNECT)}
    command = [sys.executable, "-m", __name__, str(directory), name, query, refresh]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603  (our own)
    if done.returncode:
        raise InvalidPipeline(f"live view {name!r} cannot be created: {done.stdout.strip() or done.stderr.strip()[-2_000:]}")


def main(directory: str, name: str, query: str, refresh: str) -> None:
    try:
        _create(Path(directory), name, query, refresh)
    except HeadwaterError as error:
        print(error)  # noqa: T201  (to whoever has started this)
        raise SystemExit(1) from error


if __name__ == "__main__":
    main(*sys.argv[1:])
