"""Results on disk: one JSON file a family, with the machine, the scale, the time it took, and every figure with its target."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks import machine
from benchmarks.targets import target_of
from benchmarks.workload import Figure

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.workload import Scale


@dataclass
class Results:
    """What a family gave."""

    family: str
    rows: int
    quick: bool
    seconds: float = 0.0
    figures: list[Figure] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    workload_seconds: dict[str, float] = field(default_factory=dict)

    @staticmethod
    def empty(family: str, scale: Scale) -> Results:
        return Results(family, scale.rows, scale.quick)

    def write(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        stored = {**asdict(self), "machine": machine.facts(), "figures": [self._judged(each) for each in self.figures]}
        (directory / f"{self.family}.json").write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n")

    @staticmethod
    def read(path: Path) -> Results:
        stored = json.loads(path.read_text())
        figures = [Figure(**{k: v for k, v in each.items() if k not in ("target", "met")}) for each in stored["figures"]]
        known = {name: stored[name] for name in ("family", "rows", "quick", "seconds", "failures", "workload_seconds")}
        return Results(**known, figures=figures)

    def _judged(self, figure: Figure) -> dict[str, Any]:
        target = target_of(self.family, figure)
        judgement = {} if target is None else {"target": f"{target.sign} {target.limit:g}", "met": target.met(figure.value)}
        return {**asdict(figure), **judgement}
