"""Every file of examples/ runs as it stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
LAST_LINES = {
    "orders.py": ["('Ada', 1, Decimal('20.50'))", "('Grace', 1, Decimal('90.00'))"],
    "network.py": [
        "12 pairs reach each other",
        "[(12, ['A', 'B', 'C', 'D'])]",
        "[('A', 'D', 12, 1)]",
        "[('A', 0), ('B', 1), ('D', 1), ('C', 2)]",
        "5 pairs reach each other",
        "[(20, ['A', 'D'])]",
        "[('A', 'D', 1)]",
        "[('A', 'D', 20, 1)]",
        "[('A', 0), ('B', 1), ('D', 1)]",
    ],
    "views_on_views.py": ["[('chair', 4), ('lamp', 5)]", "[('chair', 4), ('lamp', 5)]"],
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example(path: Path) -> None:
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    for line in LAST_LINES[path.name]:
        assert line in done.stdout.splitlines()


def test_datalog_example() -> None:
    # In a process of its own, for the command ends the Spark session that it finds.
    command = [sys.executable, "-m", "headwater.cli", "datalog", str(EXAMPLES[0].parent / "tree.dl")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    answers = ["Height", "3", "Level\tNodes", "0\t1", "1\t2", "2\t2", "3\t1", "Node\tDifference", "1\t2", "2\t1"]
    assert done.stdout.splitlines() == [*answers, "Other", "4", "5", "Region\tSize", "1\t3"]
