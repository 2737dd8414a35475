"""The tour from the first row to the verdict: load a shop, create views, let a minute of business pass, ask Spark."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

from rich.markup import escape

import headwater
from headwater.demo.display import milliseconds
from headwater.demo.figures import Figures, ViewFigures
from headwater.demo.judge import Judge, difference
from headwater.demo.shop import Shop
from headwater.demo.views import QUESTIONS
from headwater.demo.wares import WARES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater import Session
    from headwater.demo.display import Display
    from headwater.demo.shop import Changes

_CHUNK = 50_000
_DIFFERENCES_SHOWN = 5


def tour(display: Display, rows: int, seconds: float, seed: int) -> bool:
    """Runs it all, and says whether every view equals Spark's answer."""
    with headwater.connect() as session:
        with display.working("Starting Spark"), _quietly():
            judge = Judge(session.spark, QUESTIONS)
        with display.working(f"Making up a shop of {rows:,} rows"):
            shop = Shop(rows, seed)
        _load(session, shop, display)
        views = _create_views(session, display)
        _ask_spark(judge, shop, views, display)
        figures = _trade(session, shop, Figures(views, seconds), display)
        _ask_spark(judge, shop, views, display)
        display.say(_summary(figures))
        return _verdict(judge, views, display)


def _load(session: Session, shop: Shop, display: Display) -> None:
    display.say("Loading it")
    with display.loading({name: shop.count(name) for name in WARES}) as came:
        for name, ware in WARES.items():
            session.create_table(name, ware.columns, key=ware.key)
            for rows in shop.chunks(name, _CHUNK):
                session.insert(name, rows)
                came(name, rows.num_rows)


def _create_views(session: Session, display: Display) -> list[ViewFigures]:
    views = []
    for question in QUESTIONS:
        with display.working(f"Creating the live view {question.name} ({question.shows})"):
            views.append(ViewFigures.of(question, session.create_view(question.name, question.query)))
    return views


def _ask_spark(judge: Judge, shop: Shop, views: Sequence[ViewFigures], display: Display) -> None:
    """Gives Spark the tables as they are now, and takes its times."""
    with display.working("Giving Spark the same tables"):
        judge.learn(shop)
    for each in views:
        with display.working(f"Spark computes {each.question.name} from scratch, better of two runs") as outcome:
            each.spark_seconds = judge.seconds(each.question)
            outcome.said = milliseconds(each.spark_seconds)


def _trade(session: Session, shop: Shop, figures: Figures, display: Display) -> Figures:
    display.say(f"{figures.duration:.0f} s of business: inserts, updates and deletes in all tables, kept up with in all views")
    with display.following(figures) as show:
        while not figures.over:
            changes = shop.business()
            figures.begin()
            started = perf_counter()
            _apply(session, changes)
            seconds = perf_counter() - started
            session.await_idle()
            figures.end(seconds, len(changes))
            show()
    return figures


def _apply(session: Session, changes: Changes) -> None:
    with session.transaction() as transaction:
        for table, rows in changes.deletes.items():
            transaction.delete(table, rows)
        for table, rows in changes.upserts.items():
            transaction.upsert(table, rows)
        for table, rows in changes.inserts.items():
            transaction.insert(table, rows)


def _summary(figures: Figures) -> str:
    return (
        f"{len(figures.latencies):,} epochs changed {figures.rows_in:,} rows of tables and {figures.rows_out:,} of views. "
        f"An epoch, all views together, took {milliseconds(figures.quantile(0.5))} in the median, and 95 % took at most "
        f"{milliseconds(figures.quantile(0.95))}. Spark from scratch takes {milliseconds(figures.spark_seconds)}, "
        f"[bold]{figures.ratio:,.0f} times[/] the median."
    )


def _verdict(judge: Judge, views: Sequence[ViewFigures], display: Display) -> bool:
    """Compares each view with Spark's answer."""
    wrong = 0
    for each in views:
        with display.working(f"Comparing {each.question.name} with Spark's answer") as outcome:
            ours = each.view.arrow()
            differing = difference(ours, judge.answer(each.question))
            outcome.said = f"[red]{len(differing):,} rows differ[/]" if len(differing) else f"equal, {len(ours):,} rows"
        for row in differing.slice(0, _DIFFERENCES_SHOWN).to_pylist():
            more = row.pop("more")
            display.say(f"  {more:+d} in {'the view' if more > 0 else 'Spark'}: {escape(str(tuple(map(str, row.values()))))}")
        wrong += bool(len(differing))
    if wrong:
        display.say(f"[red]{wrong} of {len(views)} views differ from Spark's answers.[/]")
    else:
        display.say(f"[green]All {len(views)} views equal Spark's answers.[/]")
    return not wrong


@contextmanager
def _quietly() -> Iterator[None]:
    """Keeps what Spark's Java process writes to standard error out of the display, unless it fails to start."""
    with tempfile.TemporaryFile() as messages:
        kept = os.dup(2)
        os.dup2(messages.fileno(), 2)
        try:
            yield
        except BaseException:
            messages.seek(0)
            os.write(kept, messages.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)
