"""Executors that lack something are found out before the first job, and the error says what, where, and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from shutil import rmtree
from typing import TYPE_CHECKING, Any

import pytest
from standalone import ROOT

import headwater as hw
from headwater.cluster.cluster import why_given_up
from headwater.cluster.readiness import is_local

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from driving import Driver

    Drive = Callable[..., Driver]

pytestmark = pytest.mark.timeout(1800)


def bare_python(folder: Path, *path: Path) -> str:
    """A Python that has all packages but this one, and what is at the path."""
    site = sysconfig.get_path("purelib")
    places = os.pathsep.join(map(str, path))
    script = folder / "python"
    # Without `site`, no .pth file is read, by which a package under development is found.
    script.write_text(
        "#!/bin/sh\n"
        f"kept=$(echo \"$PYTHONPATH\" | tr : '\\n' | grep -vx '{ROOT}' | paste -sd:)\n"
        f'PYTHONPATH="{places}:$kept:{site}" exec {sys.executable} -S "$@"\n'
    )
    script.chmod(0o755)
    return str(script)


def refused(driver: Driver) -> dict[str, Any]:
    """What the first job says; then everything goes on in the driver."""
    driver.ask("create")
    driver.tell("epoch", number=0)
    told = driver.hear()
    assert told["error"] == "EXECUTORS_NOT_READY", told
    assert driver.ask("epoch", number=0, placement="driver")["where"] == "driver"
    driver.ask("check", numbers=1)
    return told


@pytest.mark.slow
def test_executors_without_the_package(drive: Drive, tmp_path: Path) -> None:
    driver = drive(PYSPARK_PYTHON=bare_python(tmp_path))
    driver.ask("connect")
    told = refused(driver)
    assert "No module named 'headwater'" in told["message"]
    assert f"install headwater {hw.__version__}" in told["message"]
    assert "--py-files headwater.zip" in told["message"]
    # Who did not ask for executors does not need them.
    assert driver.ask("epoch", number=1, placement="auto")["where"] == "driver"


@pytest.mark.slow
def test_executors_with_another_version(drive: Drive, tmp_path: Path) -> None:
    other = tmp_path / "other" / "headwater"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text('__version__ = "0.0.7"\n')
    driver = drive(PYSPARK_PYTHON=bare_python(tmp_path, other.parent))
    driver.ask("connect")
    assert "headwater is of version 0.0.7" in refused(driver)["message"]


@pytest.mark.slow
def test_executors_without_something_that_is_needed(drive: Drive, tmp_path: Path) -> None:
    broken = tmp_path / "other" / "numba"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError(\"No module named 'numba'\")\n")
    driver = drive(PYSPARK_PYTHON=bare_python(tmp_path, broken.parent, ROOT))
    driver.ask("connect")
    assert "No module named 'numba'" in refused(driver)["message"]


@pytest.mark.slow
def test_executors_that_do_not_reach_the_directory(drive: Drive) -> None:
    """A path that leads each process to its own folder."""
    driver = drive()
    driver.ask("connect", directory=f"/proc/self/cwd/not-{os.getpid()}-shared")
    try:
        told = refused(driver)
    finally:
        driver.ask("disconnect")
        rmtree(ROOT / f"not-{os.getpid()}-shared")
    assert "shared' cannot be used: No such file or directory" in told["message"]
    assert "use a directory that the driver and all executors reach" in told["message"]


@pytest.mark.slow
def test_the_package_as_a_zip(drive: Drive, tmp_path: Path) -> None:
    target = tmp_path / "headwater.zip"
    subprocess.run([sys.executable, "-m", "headwater.cli", "zip", str(target)], check=True, cwd=ROOT, capture_output=True)
    with zipfile.ZipFile(target) as made:
        names = set(made.namelist())
    assert {"headwater/__init__.py", "headwater/cluster/tasks.py", "headwater/py.typed"} <= names
    assert not [name for name in names if "__pycache__" in name]
    arguments = f"--py-files {target} pyspark-shell"
    driver = drive(PYSPARK_PYTHON=bare_python(tmp_path), PYSPARK_SUBMIT_ARGS=arguments, HEADWATER_CACHE=str(tmp_path / "cache"))
    driver.ask("connect")
    driver.ask("create")
    assert driver.ask("epoch", number=0)["where"] == "cluster"
    driver.ask("check", numbers=1)


@pytest.mark.parametrize(("master", "local"), [("local", True), ("local[2]", True), ("local[*, 4]", True)])
def test_local_masters_are_not_asked(master: str, *, local: bool) -> None:
    class Context:
        pass

    context: Any = Context()
    context.master = master
    assert is_local(context) == local
    for other in ("spark://127.0.0.1:7077", "yarn", "k8s://https://127.0.0.1", "local-cluster[2,1,1024]"):
        context.master = other
        assert not is_local(context)


WITHOUT_ARROW = """
An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "order.py", line 15, in <module>
    import pyarrow as pa
ModuleNotFoundError: No module named 'pyarrow'
"""
TWO_STACKS = """Traceback (most recent call last):
  File "a.py", line 1, in f
KeyError: 1

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "b.py", line 2, in g
    g()
    ^^^
OSError: full
 of bytes
\tat org.apache.spark
"""


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("Job aborted.\nMore of it", "Job aborted."),
        (WITHOUT_ARROW, "ModuleNotFoundError: No module named 'pyarrow'"),
        (TWO_STACKS, "OSError: full"),
        ('An exception:\n  File "a.py", line 1', "An exception:"),
        ("", ""),
    ],
)
def test_a_job_that_is_given_up_says_why(said: str, why: str) -> None:
    assert why_given_up(said) == why
