"""What is run and what it gives: a workload at a scale gives figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Scale:
    """How large everything is; one number of rows decides, the rest follows from whether the run is quick."""

    rows: int = 10_000_000
    quick: bool = False
    # Files that workloads of one family share.
    directory: Path = field(default_factory=Path.cwd)

    @property
    def deltas(self) -> tuple[int, ...]:
        """Rows changed by a commit, as many as fit the table."""
        return tuple(size for size in (10, 100, 1_000, 10_000, 100_000) if size <= self.rows // 10)

    @property
    def epochs(self) -> int:
        """Commits of a long run."""
        return min(2_000 if self.quick else 10_000, self.rows // 100)

    @property
    def views(self) -> tuple[int, ...]:
        """How many views there are over one table."""
        return (1, 10, 100) if self.rows >= 100_000 else (1, 2, 3)

    @property
    def tpch(self) -> float:
        """The scale factor of TPC-H: 1 for ten million rows; below 0.01 its keys are not unique."""
        return max(0.01, self.rows / 10_000_000)

    def repeats(self, size: int) -> int:
        """How many commits of so many rows are measured."""
        most = 30 if size <= 1_000 else 10 if size <= 10_000 else 5 if size <= 100_000 else 1
        return max(1, most // 3) if self.quick else most

    @property
    def recomputes(self) -> int:
        """How often Spark recomputes, beyond the first runs that warm it up."""
        return 1 if self.rows < 100_000 else 3 if self.quick else 7


@dataclass(frozen=True)
class Figure:
    """One number: `measure` says which, `kind` what sort of view it is of, `details` what it was made from."""

    workload: str
    kind: str
    measure: str
    value: float
    unit: str
    delta: int | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Workload:
    """Something to measure, by name."""

    name: str
    run: Callable[[Scale], list[Figure]]


def nothing(_figures: list[Figure]) -> list[Figure]:
    return []


@dataclass(frozen=True)
class Family:
    """Workloads that belong together; `summary` gives figures of all of them as a whole."""

    workloads: tuple[Workload, ...]
    summary: Callable[[list[Figure]], list[Figure]] = nothing
