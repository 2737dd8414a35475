"""Memory: a view is built, and fed, over more rows than the driver may hold, and the driver does not grow with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from driving import Driver

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

# More than twice what the heap of the driver's JVM holds, and four times what its Python may grow by.
ROWS = 12_000_000
HEAP = 256 << 20
GROWTH = 128 << 20
SMALL = {"spark.driver.memory": str(HEAP), "spark.testing.reservedMemory": str(32 << 20), "spark.executor.memory": "1g"}


def peak(process: int) -> int:
    """The most memory that a process has had, in bytes."""
    status = Path(f"/proc/{process}/status").read_text()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def test_the_driver_stays_small(drive: type[Driver], tmp_path: Path) -> None:
    driver = drive(SMALL)
    driver.ask("connect", directory=str(tmp_path / "kept"), placement="cluster")
    driver.ask("warm_up")
    before = peak(driver.process)
    driver.ask("load", rows=ROWS)
    driver.ask("build")
    grown = peak(driver.process) - before
    size = sum(path.stat().st_size for path in (tmp_path / "kept" / "runs").iterdir())
    assert size > 2 * HEAP
    assert size > 4 * GROWTH
    assert grown < GROWTH, f"the driver grew by {grown >> 20} MB over {size >> 20} MB of state"
    driver.ask("check_build", rows=ROWS)
