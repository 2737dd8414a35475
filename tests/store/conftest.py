"""What tests of directories share: a template of one, made by Spark once, and processes to kill."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import shop
from processes import Processes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    directory = tmp_path_factory.mktemp("template") / "shop"
    shop.make(directory, spark)
    return directory


@pytest.fixture(scope="session")
def processes(template: Path) -> Iterator[Processes]:
    started = Processes(template)
    yield started
    started.close()
