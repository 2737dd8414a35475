"""What Spark read for an answer, from the metrics of its scans; and the two ways to an answer side by side."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    Jvm = Any


@dataclass(frozen=True)
class Scanned:
    """Files and rows that the scans of a query gave, row groups that they could not leave out, and the seconds it took.

    Tables that are not in files count with the rows that were handed to Spark; row groups are None where footers are not read.
    """

    files: int
    row_groups: int | None
    rows: int
    seconds: float


@dataclass(frozen=True)
class SkippingReport:
    """A query without and with a sketch; `sketch` is None if none serves it, and then both are the same."""

    sketch: str | None
    ranges: Mapping[str, tuple[str, ...]]
    without: Scanned
    skipping: Scanned

    def __str__(self) -> str:
        name = "no sketch serves this query" if self.sketch is None else f"sketch {self.sketch}"
        lines = [name, *(f"  {access}: {', '.join(texts) or 'nothing'}" for access, texts in self.ranges.items())]
        lines.append(f"{'':12}{'without':>14}{'with':>14}")
        for label, one, other in zip(
            ("files", "row groups", "rows", "seconds"),
            asdict(self.without).values(),
            asdict(self.skipping).values(),
            strict=True,
        ):
            lines.append(f"{label:12}{_shown(one):>14}{_shown(other):>14}")
        return "\n".join(lines)


def _shown(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def scans(frame: DataFrame) -> tuple[int, int]:
    """Files and rows that the file scans of a DataFrame have read, which must have been run."""
    files = rows = 0
    met: set[int] = set()
    pending = [frame._jdf.queryExecution().executedPlan()]  # noqa: SLF001  (py4j)
    while pending:
        node = pending.pop()
        name = node.getClass().getSimpleName()
        if name == "AdaptiveSparkPlanExec":
            pending.append(node.executedPlan())
        elif name.endswith("QueryStageExec"):
            pending.append(node.plan())
        elif name in ("ReusedExchangeExec", "ReusedSubqueryExec"):
            continue
        elif name == "FileSourceScanExec":
            metrics = node.metrics()
            files += int(metrics.apply("numFiles").value())
            rows += int(metrics.apply("numOutputRows").value())
        elif int(node.id()) not in met:
            met.add(int(node.id()))
            for inner in (node.children(), node.subqueries()):
                pending += [inner.apply(i) for i in range(inner.size())]
    return files, rows
