"""What all tests share: one Spark session, local or (MASTER) on a cluster."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from headwater.state import slicing

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.postgres_server import NoServer, Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


# The first call of a compiled loop compiles it.
settings.register_profile("headwater", deadline=None)
settings.load_profile("headwater")


@pytest.fixture(scope="module", params=[None, 7], ids=["slices as usual", "slices of 7"])
def slices(request: pytest.FixtureRequest) -> Iterator[None]:
    """All tests of the module twice: once as usual, and once with so few rows in a slice that everything is cut."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param is not None:
            patch.setattr(slicing, "PAIRS", request.param)
            patch.setattr(slicing, "_FIRST", 3)
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master(os.environ.get("MASTER", "local[2]"))
        .appName("headwater tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        # Large results are fetched from this address.
        .config("spark.driver.host", "127.0.0.1")
        # A machine that is busy takes its time to start a worker.
        .config("spark.python.authenticate.socketTimeout", "5m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server, with one database for all tests."""
    try:
        server = Server()
    except NoServer as missing:
        pytest.skip(str(missing))
    yield server
    server.remove()
