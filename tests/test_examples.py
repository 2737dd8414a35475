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
    "views_on_views.py": ["[('chair', 4), ('lamp', 5)]", "[('chair', 4), ('lamp', 5)]"],
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example(path: Path) -> None:
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    for line in LAST_LINES[path.name]:
        assert line in done.stdout.splitlines()
