"""`python -m benchmarks [FAMILY …]`: runs workloads, prints their tables and the scoreboard, writes JSON and plots."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks.child import WorkloadFailed, run
from benchmarks.families import FAMILIES
from benchmarks.plots import draw
from benchmarks.results import Results
from benchmarks.tables import family_table, scoreboard
from benchmarks.workload import Scale

FULL = 10_000_000
RESULTS = Path(__file__).parent / "results"


def main(
    families: Annotated[list[str] | None, typer.Argument(help=f"Of {', '.join(FAMILIES)}; all if none is named.")] = None,
    rows: Annotated[int | None, typer.Option(help="Rows of the large tables.", show_default=f"{FULL:,}")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the rows, and fewer repeats.")] = False,  # noqa: FBT002
    match: Annotated[str, typer.Option(help="Only workloads whose name has this in it.")] = "",
) -> None:
    """Measure how long changes take to reach views, beside Spark recomputing the same queries."""
    chosen = families or list(FAMILIES)
    unknown = [name for name in chosen if name not in FAMILIES]
    if unknown:
        raise typer.BadParameter(f"{', '.join(unknown)}; there are {', '.join(FAMILIES)}")
    # Where there is no terminal, lines are as long as tables need.
    console = Console() if sys.stdout.isatty() else Console(width=150)
    size = rows or (FULL // 10 if quick else FULL)
    # What is shown to readers comes from full runs alone.
    directory = RESULTS if size == FULL and not quick and not match else RESULTS / "partial"
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as shared:
        scale = Scale(size, quick, Path(shared))
        done = [_family(name, scale, match, console, directory) for name in chosen]
    console.print(scoreboard(done))
    console.print(f"Written to {directory}")


def _family(name: str, scale: Scale, match: str, console: Console, directory: Path) -> Results:
    results = Results.empty(name, scale)
    workloads = [workload for workload in FAMILIES[name].workloads if match in workload.name]
    started = perf_counter()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(name, total=len(workloads))
        for workload in workloads:
            title = f"{name}: {workload.name}"

            def tell(stage: str, title: str = title) -> None:
                progress.update(task, description=f"{title}: {stage}")

            tell("starting")
            begun = perf_counter()
            try:
                results.figures += run(name, workload.name, scale, tell)
            except WorkloadFailed as failure:
                results.failures[workload.name] = str(failure)
            results.workload_seconds[workload.name] = perf_counter() - begun
            progress.advance(task)
    results.figures += FAMILIES[name].summary(results.figures)
    results.seconds = perf_counter() - started
    results.write(directory)
    draw(results, directory)
    console.print(family_table(results))
    return results


if __name__ == "__main__":
    typer.run(main)
