"""What may know what: rules that the layout promises, told from the imports."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import headwater

PACKAGE = Path(headwater.__file__).parent
# What places, feeds, shares, rebuilds and explains steps.
BLIND = sorted(
    path
    for folder in ("runtime/*.py", "cluster/*.py", "explanation.py")
    for path in PACKAGE.glob(folder)
    # A recursion that executors close is a fixpoint; and what a linear step reads of a table outside is told by its stage.
    if path.name not in ("closures.py", "reading.py")
)


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}


@pytest.mark.parametrize("path", BLIND, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_operators_are_known_by_what_they_declare(path: Path) -> None:
    operators = {name for name in imported(path) if name.startswith("headwater.operators.")}
    assert operators <= {"headwater.operators.operator", "headwater.operators.ordering"}
