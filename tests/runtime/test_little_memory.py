"""Memory: joins with millions of pairs, of which few meet the condition or all are summed up, are kept in little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "in_little_memory.py"
GROWTH = 256 << 20
# A left join is an inner and an anti join.
QUICK = ("left join", "semi join", "sum over a left join", "two readers")


def require_little_memory(rows: int, others: int, *names: str) -> None:
    """Runs views over so many rows, beside twice so many others in the end, that have a tenth of all pairs in common."""
    command = [sys.executable, str(PROGRAM), str(rows), str(others), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(names) or not names
    for name, built, then, right, grown in found:
        assert right, f"{name}: {built} rows, and {then} after an epoch, were not expected"
        assert grown < GROWTH, f"{name}: the process grew by {grown >> 20} MB"


def test_views_over_millions_of_pairs_are_built_and_followed_in_little_memory() -> None:
    require_little_memory(12_000, 6_000, *QUICK)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_all_kinds_of_views() -> None:
    require_little_memory(30_000, 10_000)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_hundreds_of_millions_of_pairs() -> None:
    require_little_memory(200_000, 20_000, "inner join", "left join", "semi join", "sum of all pairs")
