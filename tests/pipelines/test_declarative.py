"""Live views in Spark Declarative Pipelines, as people run these: by `spark-pipelines`, with Spark Connect."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pyspark
import pytest

import headwater as hw

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_000)]
for needed in ("grpc", "grpc_status", "yaml", "zstandard"):
    pytest.importorskip(needed)

SPEC = """
name: shop
storage: file://{folder}/storage
libraries:
  - glob:
      include: transformations/**
"""
DEFINITIONS = """
from pyspark import pipelines as dp

import headwater as hw

@hw.live_view("state")
def totals():
    return "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"

@dp.materialized_view
def large():
    return spark.read.table("totals").where("total > 5")
"""


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    # A catalog in memory does not know tables of earlier runs, and does not write where they are.
    shutil.rmtree(folder / "spark-warehouse", ignore_errors=True)
    home = Path(pyspark.__file__).parent
    environment = os.environ | {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    command = [str(home / "bin" / "spark-pipelines"), "run", "--spec", str(folder / "spark-pipeline.yml")]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def large(folder: Path) -> list[tuple[str, int]]:
    found = ds.dataset(folder / "spark-warehouse" / "large", format="parquet").to_table()
    return sorted((row["customer"], row["total"]) for row in found.to_pylist())


def test_a_pipeline_of_sparks_builds_on_a_live_view(tmp_path: Path) -> None:
    (tmp_path / "transformations").mkdir()
    definitions = tmp_path / "transformations" / "shop.py"
    definitions.write_text(DEFINITIONS, encoding="utf-8")
    (tmp_path / "spark-pipeline.yml").write_text(SPEC.format(folder=tmp_path), encoding="utf-8")
    with hw.connect(tmp_path / "state") as session:
        session.create_table("orders", "id BIGINT, customer STRING, amount INT", key="id")
        session.insert("orders", [(1, "Ada", 3), (2, "Ada", 4), (3, "Ben", 2)])
    # Nobody writes to the directory: the pipeline creates the view.
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert large(tmp_path) == [("Ada", 7)]
    with hw.connect(tmp_path / "state") as session:
        assert sorted(session.view("totals").rows()) == [("Ada", 7), ("Ben", 2)]
        session.insert("orders", [(4, "Ben", 9)])
        # Somebody does, and the view is there.
        done = run(tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert large(tmp_path) == [("Ada", 7), ("Ben", 11)]
    definitions.write_text(DEFINITIONS.replace("FROM orders", "FROM nowhere"), encoding="utf-8")
    done = run(tmp_path)
    assert done.returncode != 0
    assert re.search(r"live view 'totals' cannot be created: \[[A-Z_]+\] .*nowhere", done.stdout + done.stderr)
