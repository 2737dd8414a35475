"""Where the numbers come from: the machine and the versions of what ran on it."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("headwater", "pyspark", "pyarrow", "duckdb", "numpy", "numba")


def facts() -> dict[str, str | int | float]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {
        "cores": os.cpu_count() or 1,
        "processor": model[1] if model else platform.machine(),
        "memory_gb": round(memory / 2**30, 1),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }
