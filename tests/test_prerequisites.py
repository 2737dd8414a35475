"""What `make` says and does on machines that lack something: each is a PATH with a few stand-in programs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "prerequisites.sh"
TOOLS = ("bash", "env", "sed", "head", "yes")


class Machine:
    """A folder of programs that is the whole PATH; `log` tells what apt was asked to do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "apt.log"
        for tool in TOOLS:
            (folder / tool).symlink_to(shutil.which(tool) or pytest.skip(f"no {tool} here"))

    def program(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def java(self, version: str, name: str = "java") -> None:
        self.program(name, f"""echo 'openjdk version "{version}" 2024-01-16' >&2""")

    def apt(self, package: str, then: str) -> None:
        """Apt that knows one package, and what its installation does."""
        self.program(
            "apt-cache",
            f"""case "$2" in {package}) echo '  Candidate: 1.0'; yes '  more' | head -n 20000;;
                *) echo '  Candidate: (none)';; esac""",
        )
        self.program("apt-get", f"""echo "$*" >> {self.log}; case "$*" in install*) {then};; esac""")

    def user(self, number: int) -> None:
        self.program("id", f"echo {number}")

    def check(self, what: str, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = {"PATH": str(self.folder), **environment}
        return subprocess.run([str(SCRIPT), what], check=False, capture_output=True, text=True, env=variables)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    machine.user(1000)
    return machine


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.2", "25-ea"])
def test_a_java_that_will_do_is_left_alone(machine: Machine, version: str) -> None:
    machine.java(version)
    answer = machine.check("java")
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")


@pytest.mark.parametrize("version", [None, "1.8.0_292", "11.0.2"])
def test_without_rights_one_line_says_what_to_install(machine: Machine, version: str | None) -> None:
    if version:
        machine.java(version)
    answer = machine.check("java")
    assert answer.returncode == 1
    assert answer.stderr.count("\n") == 1
    assert "sudo apt-get install openjdk-17-jre-headless" in answer.stderr


@pytest.mark.parametrize("package", ["openjdk-17-jre-headless", "openjdk-21-jre-headless", "default-jre-headless"])
def test_root_gets_the_java_that_apt_has(machine: Machine, package: str) -> None:
    machine.user(0)
    machine.java("21.0.2", "installed")
    machine.program("cp", f'exec {shutil.which("cp")} "$@"')
    machine.apt(package, f"cp {machine.folder}/installed {machine.folder}/java")
    answer = machine.check("java")
    assert answer.returncode == 0, answer.stderr
    assert f"install -y -qq --no-install-recommends {package}" in machine.log.read_text(encoding="utf-8")


def test_an_old_java_home_is_named(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    machine.java("21.0.2")
    machine.java("11.0.2", "bin/java")
    answer = machine.check("java", JAVA_HOME=str(tmp_path))
    assert answer.returncode == 1
    assert "JAVA_HOME has 11" in answer.stderr


def test_an_old_java_before_the_new_one_is_named(machine: Machine) -> None:
    machine.user(0)
    machine.java("11.0.2")
    machine.apt("openjdk-17-jre-headless", "true")
    answer = machine.check("java")
    assert answer.returncode == 1
    assert "the java on the PATH is 11: set JAVA_HOME" in answer.stderr


def test_the_first_python_that_is_new_enough_is_taken(machine: Machine) -> None:
    machine.program("python3", "exit 1")
    machine.program("python3.12", "exit 0")
    answer = machine.check("python")
    assert (answer.returncode, answer.stdout) == (0, "python3.12\n")


def test_no_python_that_is_new_enough(machine: Machine) -> None:
    answer = machine.check("python")
    assert answer.returncode == 1
    assert answer.stderr.count("\n") == 1
    assert "needs Python 3.11 or newer" in answer.stderr


WITHOUT_VENV = """case "$2" in *ensurepip*) exit 1;; *print*) echo 3.13;; esac"""


def test_a_missing_venv_is_named(machine: Machine) -> None:
    machine.program("python3", WITHOUT_VENV)
    answer = machine.check("python")
    assert answer.returncode == 1
    assert "sudo apt-get install python3.13-venv" in answer.stderr


def test_a_missing_venv_is_installed_by_root(machine: Machine) -> None:
    machine.user(0)
    machine.program("python3", WITHOUT_VENV)
    machine.apt("python3.13-venv", "true")
    answer = machine.check("python")
    assert (answer.returncode, answer.stdout) == (0, "python3\n")
    assert "install -y -qq --no-install-recommends python3.13-venv" in machine.log.read_text(encoding="utf-8")
