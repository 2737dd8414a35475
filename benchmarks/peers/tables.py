"""Peers side by side, and the targets set against them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.table import Table

from benchmarks.tables import duration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True)
class Outcome:
    """One view through one peer: medians of seconds by the number of rows changed."""

    peer: str
    view: str
    version: str
    load: float
    memory: int
    groups: list[int]
    times: dict[int, float]
    applied: dict[int, float]


@dataclass(frozen=True)
class Target:
    """By which factor a measure must be smaller than that of the best of some peers."""

    words: str
    peers: tuple[str, ...]
    limit: float
    measure: Callable[[Outcome], float]
    shown: Callable[[float], str] = duration


def gigabytes(value: float) -> str:
    return f"{value / 2**30:.1f} GB"


STREAMING = ("pathway", "flink")
TARGETS = (
    Target("10 rows: no slower than the best streaming peer", STREAMING, 1, lambda each: each.times[10]),
    Target("1000 rows: ≥ 2 × the best streaming peer", STREAMING, 2, lambda each: each.times[1_000]),
    Target("10 000 rows: ≥ 3 × the best streaming peer", STREAMING, 3, lambda each: each.times[10_000]),
    Target("1000 rows: ≥ 20 × DuckDB's recompute", ("duckdb",), 20, lambda each: each.times[1_000]),
    Target("load: ≥ 10 × the best streaming peer", STREAMING, 10, lambda each: each.load),
    Target("load: in less memory than any streaming peer", STREAMING, 1, lambda each: each.memory, gigabytes),
)


def peers_table(outcomes: Sequence[Outcome], rows: int) -> Table:
    versions = {outcome.peer: outcome.version for outcome in outcomes}
    table = Table(
        "view", "rows changed", *versions.values(), title=f"{rows:,} rows, until the changed answer is there; medians"
    )
    for view in dict.fromkeys(outcome.view for outcome in outcomes):
        mine = {outcome.peer: outcome for outcome in outcomes if outcome.view == view}
        sizes = next(iter(mine.values())).times
        for size in sizes:
            table.add_row(view, f"{size:,}", *(_time(mine.get(peer), size) for peer in versions))
        for name, shown in (
            ("load", lambda each: duration(each.load)),
            ("memory", lambda each: gigabytes(each.memory)),
        ):
            table.add_row(view, name, *(shown(mine[peer]) if peer in mine else "–" for peer in versions))
        agree = {peer: _agreement(each, mine.get("headwater")) for peer, each in mine.items()}
        table.add_row(view, "same groups", *(agree.get(peer, "–") for peer in versions), end_section=True)
    return table


def _time(outcome: Outcome | None, size: int) -> str:
    if outcome is None:
        return "–"
    applied = f" (+ {duration(outcome.applied[size])})" if size in outcome.applied else ""
    return duration(outcome.times[size]) + applied


def _agreement(outcome: Outcome, ours: Outcome | None) -> str:
    if ours is None or not outcome.groups:
        return ""
    return "yes" if outcome.groups == ours.groups else "[red]no[/]"


def scoreboard(outcomes: Sequence[Outcome]) -> Table:
    """Each target against the peer it is set against."""
    table = Table("view", "target", "Headwater", "best peer", "ratio", "met", title="Targets")
    for ours in (outcome for outcome in outcomes if outcome.peer == "headwater"):
        for target in TARGETS:
            others = [each for each in outcomes if each.view == ours.view and each.peer in target.peers]
            if not others:
                continue
            best = min(others, key=target.measure)
            ratio = target.measure(best) / target.measure(ours)
            here, there = (target.shown(target.measure(each)) for each in (ours, best))
            met = "[green]✓[/]" if ratio >= target.limit else "[red]✗[/]"
            table.add_row(ours.view, target.words, here, f"{best.peer} {there}", f"{ratio:.1f}×", met)
    return table
