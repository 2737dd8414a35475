"""Writes requirements.lock: the newest versions that fit pyproject.toml, as plain `name==version` lines.

Only names and versions: where packages come from is up to the machine that installs them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
OLDEST = (3, 11)
HEAD = "# Exact versions of all that `make setup` installs. Written by `make lock`; do not edit.\n"


def wanted() -> list[str]:
    """All that the package, its build and its development need, as pyproject.toml says it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return [*project["build-system"]["requires"], *project["project"]["dependencies"], *project["dependency-groups"]["dev"]]


def resolve(requirements: list[str]) -> list[tuple[str, str]]:
    """Names and versions that pip would install into an empty environment."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        options = ["--quiet", "--dry-run", "--ignore-installed", "--report", str(report)]
        subprocess.run([sys.executable, "-m", "pip", "install", *options, *requirements], check=True)
        installed = json.loads(report.read_text(encoding="utf-8"))["install"]
    return sorted((re.sub(r"[-_.]+", "-", each["metadata"]["name"]).lower(), each["metadata"]["version"]) for each in installed)


def main() -> None:
    if sys.version_info[:2] != OLDEST:
        sys.exit("lock with Python {}.{}, the oldest supported: its pins fit the newer ones too".format(*OLDEST))
    pins = resolve(wanted())
    (ROOT / "requirements.lock").write_text(HEAD + "".join(f"{name}=={version}\n" for name, version in pins), encoding="utf-8")
    print(f"requirements.lock: {len(pins)} packages")


if __name__ == "__main__":
    main()
