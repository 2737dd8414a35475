from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import headwater
from headwater import errors

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
HEAVY = ("pyspark", "py4j", "duckdb", "pyarrow", "pandas")
ERRORS = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.HeadwaterError)]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def run(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


def test_import_is_quick_and_starts_nothing() -> None:
    program = f"import sys, headwater; print([name for name in {HEAVY!r} if name in sys.modules])"
    assert run(program) == "[]"


def test_errors_can_be_caught_without_importing_the_engine() -> None:
    program = f"import sys, headwater as hw; hw.NullKey('x'); print([name for name in {HEAVY!r} if name in sys.modules])"
    assert run(program) == "[]"


def test_every_error_is_public() -> None:
    assert {error.__name__ for error in ERRORS} <= set(headwater.__all__)


def test_error_codes_are_distinct() -> None:
    assert len({error.code for error in ERRORS}) == len(ERRORS)


def test_unknown_names_are_reported_as_python_does() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = headwater.nothing


def test_version_is_the_one_of_the_project() -> None:
    assert headwater.__version__ == PROJECT["project"]["version"]


def test_lock_holds_exact_versions_and_no_addresses() -> None:
    lines = [line for line in LOCK.splitlines() if line and not line.startswith("#")]
    assert lines == sorted(lines, key=lambda line: line.split("=="))
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[0-9][a-z0-9.+!]*", line)] == []


def test_lock_satisfies_the_project() -> None:
    from packaging.requirements import Requirement

    pins = dict(line.split("==") for line in LOCK.splitlines() if "==" in line and not line.startswith("#"))
    stated = [
        *PROJECT["build-system"]["requires"],
        *PROJECT["project"]["dependencies"],
        *PROJECT["project"]["optional-dependencies"]["pandas"],
        *PROJECT["dependency-groups"]["dev"],
    ]
    for requirement in map(Requirement, stated):
        name = canonical(requirement.name)
        assert name in pins, f"{requirement} is not in the lock: run make lock"
        assert pins[name] in requirement.specifier, f"{requirement} is not met by the lock: run make lock"


def test_scripts_and_makefile_name_no_machine() -> None:
    texts = [ROOT / "Makefile", ROOT / "pyproject.toml", ROOT / ".ci" / "run", *(ROOT / "scripts").iterdir()]
    for path in texts:
        if path.is_file():
            assert not re.search(r"https?://|file://|index-url|find-links", path.read_text(encoding="utf-8")), path


def test_page_of_what_is_supported_is_what_the_engine_says() -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts" / "supported.py", "--check"], check=False)
    assert done.returncode == 0, "run: python scripts/supported.py"
