"""The figures of the tour: how long each epoch took, what changed by it, and what Spark takes for the same."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater import View
    from headwater.demo.views import Question


@dataclass
class ViewFigures:
    """One view: its size, and what the last epoch did to it."""

    question: Question
    view: View
    rows: int
    changed: int = 0
    spark_seconds: float = 0.0

    @staticmethod
    def of(question: Question, view: View) -> ViewFigures:
        """Follows a view from now on."""
        figures = ViewFigures(question, view, len(view))
        view.subscribe(figures._follow)
        return figures

    def operators(self) -> tuple[str, float]:
        """The maintenance class of the view, and the seconds that its operators took last, those included that it shares."""
        explained = json.loads(self.view.explain("json"))
        return explained["class"], sum(operator["last_seconds"] for operator in explained["operators"])

    def _follow(self, _epoch: int, changes: pa.Table) -> None:
        weights = changes.column("_weight").to_numpy()
        self.rows += int(weights.sum())
        self.changed = int(np.abs(weights).sum())


@dataclass
class Figures:
    """All views, epoch by epoch, for so many seconds from now."""

    views: list[ViewFigures]
    duration: float
    started: float = field(default_factory=perf_counter)
    latencies: list[float] = field(default_factory=list)
    rows_in: int = 0
    rows_out: int = 0

    def begin(self) -> None:
        """An epoch begins, in which no view has changed yet."""
        for each in self.views:
            each.changed = 0

    def end(self, seconds: float, rows: int) -> None:
        """An epoch has ended: so long it took, and so many rows of tables it changed."""
        self.latencies.append(seconds)
        self.rows_in += rows
        self.rows_out += sum(each.changed for each in self.views)

    @property
    def elapsed(self) -> float:
        return min(perf_counter() - self.started, self.duration)

    @property
    def over(self) -> bool:
        return perf_counter() - self.started >= self.duration

    def quantile(self, share: float) -> float:
        """The latency within which this share of the epochs ended."""
        return float(np.quantile(self.latencies, share))

    @property
    def spark_seconds(self) -> float:
        """What Spark takes to compute all views."""
        return sum(each.spark_seconds for each in self.views)

    @property
    def ratio(self) -> float:
        """How many times as long as the median epoch Spark takes."""
        return self.spark_seconds / self.quantile(0.5)
