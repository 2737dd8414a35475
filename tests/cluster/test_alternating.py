"""Some of the SQL fixtures on local Spark, each epoch and build placed at random; on a real cluster all of them are run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from alternating import alternating
from test_sql import FOLDERS, Replay, read_folder

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

# One of so many queries of each folder.
STRIDES = {"shop": 12, "graph": 4, "staff": 12, "types": 12}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("path", [path for path in FOLDERS if path.name in STRIDES], ids=lambda path: path.name)
def test_fixtures_on_both_placements(spark: SparkSession, path: Path) -> None:
    folder = read_folder(path)
    queries = [query for query in folder.queries if query.gap is None][:: STRIDES[path.name]]
    played = Replay(spark, folder, {query.name: query for query in queries})
    with alternating(seed=len(queries)) as counts:
        played.run()
    assert not played.failures, "\n".join(failure.text for failure in played.failures.values())
    assert counts["done"] > 0.8 * counts["asked"] > 0
