"""Results as a person reads them: a table a family, and the scoreboard of targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from benchmarks.targets import TARGETS, target_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.results import Results
    from benchmarks.workload import Figure

# Details worth a column, where a figure has them.
TIMES = {"refresh_s": "Headwater", "recompute_s": "Spark"}


def duration(value: float) -> str:
    """Seconds in the unit that fits."""
    if value >= 10:
        return f"{value:.0f} s"
    if value >= 1:
        return f"{value:.1f} s"
    return f"{value * 1000:.0f} ms" if value >= 0.1 else f"{value * 1000:.2f} ms"


def number(value: float, unit: str) -> str:
    if unit == "s":
        return duration(value)
    shown = f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return f"{shown}{unit if unit in ('×', '%') else ' ' + unit if unit else ''}"


def judged(family: str, figure: Figure) -> tuple[str, str]:
    """The target, and whether it is met."""
    target = target_of(family, figure)
    if target is None:
        return "", ""
    return f"{target.sign} {target.limit:g}", "[green]✓[/]" if target.met(figure.value) else "[red]✗[/]"


def family_table(results: Results) -> Table:
    title = f"{results.family}, {results.rows:,} rows, {results.seconds / 60:.1f} minutes"
    table = Table("workload", "rows changed", title=title)
    for heading in (*TIMES.values(), "measured", "", "target"):
        table.add_column(heading, justify="left" if heading == "" else "right")
    table.add_column("")
    before = None
    for figure in results.figures:
        times = [duration(figure.details[name]) if name in figure.details else "" for name in TIMES]
        delta = "" if figure.delta is None else f"{figure.delta:,}"
        shown = number(figure.value, figure.unit)
        name = figure.workload if figure.workload != before else ""
        table.add_row(name, delta, *times, shown, figure.measure, *judged(results.family, figure))
        before = figure.workload
    for workload, reason in results.failures.items():
        table.add_row(workload, "", "", "", "", f"[red]failed: {reason}[/]")
    return table


def scoreboard(families: Sequence[Results]) -> Table:
    """Every target: how many figures keep it, and the one farthest from it."""
    table = Table("target", "limit", "worst seen", "where", "met", title="Targets")
    for target in TARGETS:
        results = next((each for each in families if each.family == target.family), None)
        if results is None:
            continue
        # A figure is judged by the first target that applies to it, as in the tables.
        figures = [figure for figure in results.figures if target_of(results.family, figure) is target]
        limit = f"{target.sign} {target.limit:,g}"
        if not figures:
            table.add_row(f"{target.family}: {target.words}", limit, "–", "not measured", "–")
            continue
        kept = sum(target.met(figure.value) for figure in figures)
        value = target.worst(figure.value for figure in figures)
        worst = next(figure for figure in figures if figure.value == value)
        where = worst.workload + ("" if worst.delta is None else f", {worst.delta:,} rows")
        colour = "green" if kept == len(figures) else "red"
        met = f"[{colour}]{kept} of {len(figures)}[/]"
        table.add_row(f"{target.family}: {target.words}", limit, number(value, worst.unit), where, met)
    for results in families:
        for workload, reason in results.failures.items():
            table.add_row(f"{results.family}: {workload}", "", "", reason, "[red]failed[/]")
    return table
