"""What every peer reads and tells: the files of a scenario, and one line of JSON. Needs nothing but PyArrow."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def rows_of(path: Path) -> pa.Table:
    return pq.read_table(path)


def changes(directory: Path) -> Iterator[tuple[int, pa.Table, pa.Table]]:
    """The changes in their order: how many rows, those that go, those that come."""
    for path in sorted(directory.glob("change-*-going.parquet")):
        size = int(path.name.split("-")[2])
        yield size, rows_of(path), rows_of(path.with_name(path.name.replace("going", "coming")))


def plain(rows: pa.Table | pa.RecordBatch) -> dict[str, list[int]]:
    return rows.to_pydict()


def peak() -> int:
    """The most memory that this process and those that it started took, in bytes."""
    return sum(_peak(int(path.name)) for path in Path("/proc").glob("[0-9]*") if _is_ours(path))


def _is_ours(process: Path) -> bool:
    """Of the same session, which the parent started for this peer alone."""
    own = _session(Path("/proc/self"))
    return own is not None and _session(process) == own


def _session(process: Path) -> str | None:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[3]
    except OSError:
        return None


def _peak(process: int) -> int:
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def done(  # noqa: PLR0913
    version: str,
    load: float,
    times: dict[int, list[float]],
    groups: Iterable[int],
    *,
    memory: int,
    applied: dict[int, list[float]] | None = None,
) -> None:
    """Tells the outcome.

    The groups of the last answer show that all peers gave the same; `applied` are the seconds of changing a table before the
    query can run again.
    """
    outcome = {"version": version, "load": load, "times": times, "applied": applied or {}, "memory": memory}
    print(json.dumps({**outcome, "groups": sorted(groups)}))
