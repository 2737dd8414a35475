"""Memory: a view is built, and fed, over more rows than the driver may hold, and the driver does not grow with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from driving import Driver

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

# About 50 bytes a row in files, a fifth of which the heap of the driver's JVM, and what Python may grow by, could hold.
ROWS = 12_000_000
GROWTH = 128 << 20
SMALL_HEAP = {"spark.driver.memory": "128m", "spark.testing.reservedMemory": "16m", "spark.executor.memory": "1g"}


def peak(process: int) -> int:
    """The most memory that a process has had, in bytes."""
    status = Path(f"/proc/{process}/status").read_text()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def test_the_driver_stays_small(drive: type[Driver], tmp_path: Path) -> None:
    loader = drive()
    loader.ask("connect", directory=str(tmp_path / "kept"), durability="memory", placement="driver", memory="1 GB")
    loader.ask("load", rows=ROWS)
    loader.ask("disconnect")
    loader.close()
    driver = drive(SMALL_HEAP)
    driver.ask("connect", directory=str(tmp_path / "kept"), placement="cluster")
    driver.ask("warm_up")
    before = peak(driver.process)
    driver.ask("build")
    size = sum(path.stat().st_size for path in (tmp_path / "kept" / "runs").iterdir())
    grown = peak(driver.process) - before
    assert size > 4 * GROWTH
    assert grown < GROWTH, f"the driver grew by {grown >> 20} MB over {size >> 20} MB of state"
    driver.ask("check_build", rows=ROWS)
