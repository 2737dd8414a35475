"""What the tour shows: bars, spinners and a table that moves on a terminal; lines where there is none."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from headwater.demo.figures import Figures

_HEIGHTS = "▁▂▃▄▅▆▇█"
_EPOCHS_SHOWN = 60


def display() -> Display:
    """The display that fits where the output goes."""
    console = Console()
    return Terminal(console) if console.is_terminal else Display(console)


@dataclass
class Outcome:
    """What came out of some work: whatever it says itself, else how long it took."""

    said: str = ""
    started: float = field(default_factory=perf_counter)

    def text(self) -> str:
        return self.said or f"{perf_counter() - self.started:.1f} s"


class Display:
    """Plain lines, for files and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, text: str = "") -> None:
        self._console.print(text, highlight=False, soft_wrap=True)

    @contextmanager
    def working(self, title: str) -> Iterator[Outcome]:
        """Shows that something is going on, and then what came out."""
        outcome = Outcome()
        self._console.print(f"{title} …", end=" ", highlight=False, soft_wrap=True)
        try:
            yield outcome
        except BaseException:
            self.say()
            raise
        self.say(outcome.text())

    @contextmanager
    def loading(self, totals: Mapping[str, int]) -> Iterator[Callable[[str, int], None]]:
        """Shows how many rows of each table there are: what is given is to be called with a table and how many have come."""
        started = perf_counter()
        missing = dict(totals)

        def came(table: str, rows: int) -> None:
            missing[table] -= rows
            if not missing[table]:
                self.say(f"  {table:<9} {totals[table]:>9,} rows  after {perf_counter() - started:.1f} s")

        yield came

    @contextmanager
    def following(self, figures: Figures) -> Iterator[Callable[[], None]]:
        """Shows the figures as they develop: what is given is to be called after each epoch."""
        yield _at_most_every(5.0, lambda: self.say(_line(figures)))


class Terminal(Display):
    """Bars, spinners and a table that move."""

    @contextmanager
    def working(self, title: str) -> Iterator[Outcome]:
        outcome = Outcome()
        with self._console.status(f"{title} …"):
            yield outcome
        self.say(f"{title} … [bold]{outcome.text()}[/]")

    @contextmanager
    def loading(self, totals: Mapping[str, int]) -> Iterator[Callable[[str, int], None]]:
        columns = (TextColumn("  {task.description:<9}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self._console) as progress:
            tasks = {table: progress.add_task(table, total=total) for table, total in totals.items()}
            yield lambda table, rows: progress.advance(tasks[table], rows)

    @contextmanager
    def following(self, figures: Figures) -> Iterator[Callable[[], None]]:
        with Live(console=self._console, auto_refresh=False) as live:

            def draw() -> None:
                live.update(_picture(figures), refresh=True)

            yield _at_most_every(0.25, draw)
            draw()


def _at_most_every(seconds: float, action: Callable[[], None]) -> Callable[[], None]:
    last = perf_counter()

    def act() -> None:
        nonlocal last
        if perf_counter() - last >= seconds:
            action()
            last = perf_counter()

    return act


def _line(figures: Figures) -> str:
    return (
        f"  {figures.elapsed:3.0f} s  epoch {len(figures.latencies):>5,}  last {milliseconds(figures.latencies[-1])}  "
        f"median {milliseconds(figures.quantile(0.5))}  95 % within {milliseconds(figures.quantile(0.95))}  "
        f"changed {figures.rows_in:>7,} rows of tables, {figures.rows_out:>7,} of views"
    )


def _picture(figures: Figures) -> Group:
    return Group(_views(figures), _latencies(figures)) if figures.latencies else Group()


def _views(figures: Figures) -> Table:
    table = Table(box=SIMPLE_HEAD)
    table.add_column("live view", style="bold", no_wrap=True)
    table.add_column("class", no_wrap=True)
    for heading in ("rows", "changed", "last", "Spark"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in figures.views:
        kind, seconds = each.operators()
        table.add_row(
            each.question.name,
            kind,
            f"{each.rows:,}",
            f"{each.changed:,}",
            milliseconds(seconds),
            milliseconds(each.spark_seconds),
        )
    return table


def _latencies(figures: Figures) -> Text:
    recent = figures.latencies[-_EPOCHS_SHOWN:]
    heights = "".join(_HEIGHTS[int(seconds / max(recent) * (len(_HEIGHTS) - 1))] for seconds in recent)
    return Text.assemble(
        f"  {figures.elapsed:.0f} of {figures.duration:.0f} s, epoch {len(figures.latencies):,}: ",
        f"changed {figures.rows_in:,} rows of tables and {figures.rows_out:,} of views\n",
        "  ",
        (heights, "cyan"),
        f"\n  an epoch, all views: last {milliseconds(figures.latencies[-1])}, median {milliseconds(figures.quantile(0.5))}, ",
        f"95 % within {milliseconds(figures.quantile(0.95))}\n",
        f"  Spark from scratch: {milliseconds(figures.spark_seconds)}, ",
        (f"{figures.ratio:,.0f} ×", "bold green"),
        " the median epoch",
    )


def milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.0f} ms"
