"""Runs the examples of README.md and docs/*.md: what a ```python block prints is what the ```text block right after it shows.

The blocks of one page share their names, as a reader would type them one after the other.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import headwater
from headwater import errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\s*```text\n(?P<output>.*?)^```\n)?", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    line: int
    code: str
    output: str | None


def examples(page: Path) -> list[Example]:
    text = page.read_text(encoding="utf-8")
    return [Example(text.count("\n", 0, block.start("code")), block["code"], block["output"]) for block in BLOCK.finditer(text)]


WITH_EXAMPLES = [page for page in PAGES if examples(page)]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=[page.stem for page in WITH_EXAMPLES])
def test_examples_print_what_the_page_shows(page: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = headwater.connect
    sessions = []

    def connect_here(*arguments: Any, **options: Any) -> headwater.Session:
        sessions.append(connect(*arguments, **{"spark": spark, **options}))
        return sessions[-1]

    monkeypatch.setattr(headwater, "connect", connect_here)
    names: dict[str, Any] = {"__name__": page.stem}
    try:
        for example in examples(page):
            printed = io.StringIO()
            # The empty lines make a traceback name the line of the page.
            program = compile("\n" * example.line + example.code, str(page), "exec")
            with contextlib.redirect_stdout(printed):
                exec(program, names)
            assert printed.getvalue() == (example.output or ""), f"{page.name}, line {example.line + 1}"
    finally:
        for session in sessions:
            session.close()


def test_the_first_example_is_there() -> None:
    assert any(example.output for example in examples(ROOT / "README.md"))


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_reference_lists_every_error() -> None:
    listed = set(
        re.findall(r"^\| `(\w+)` \| `([A-Z_]+)` \|", (ROOT / "docs" / "reference.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.HeadwaterError)]
    assert listed == {(kind.__name__, kind.code) for kind in kinds if kind is not errors.HeadwaterError}
