"""The past of a directory: whatever was seen at an epoch can be seen again, in whichever session, as far as it is kept."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import shop

import headwater as hw
from headwater.errors import HistoryGone, UnknownEpoch
from headwater.store import store

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    Seen = dict[str, Counter[tuple[Any, ...]]]


@pytest.fixture
def directory(tmp_path: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(store, "_BYTES", 4_000)
    return shutil.copytree(template, tmp_path / "shop")


def seen(session: hw.Session) -> Seen:
    views = {name: view.rows() for name, view in session.views().items()}
    return {name: Counter(map(tuple, rows)) for name, rows in views.items()} | shop.content(session)


def live(directory: Path, past: dict[int, Seen], seed: int, epochs: int, **options: Any) -> None:
    """A session's worth of epochs, each of them recorded."""
    with hw.connect(directory, **options) as session:
        past.setdefault(session.epoch, seen(session))
        changes = shop.transactions(seed, session)
        for _ in range(epochs):
            epoch = shop.commit(session, next(changes))
            past[epoch] = seen(session)
        if "strong" in session.views() and seed % 2:
            session.drop_view("strong")
            past[session.epoch] = seen(session)


def check_past(session: hw.Session, past: dict[int, Seen], epochs: list[int]) -> None:
    for epoch in epochs:
        for name, rows in past[epoch].items():
            if name in session.views() or name in shop.TABLES:
                relation = (session.views() | session.tables())[name]  # type: ignore[operator]
                assert Counter(map(tuple, relation.at(epoch).rows())) == rows, (name, epoch)
        for name, view in session.views().items():
            replayed = Counter(past[epoch][name])
            for at, changes in view.changes(since=epoch):
                assert at > epoch
                for *row, weight in zip(*(column.to_pylist() for column in changes.columns), strict=True):
                    replayed[tuple(row)] += weight
            assert {row: count for row, count in replayed.items() if count} == past[session.epoch][name], (name, epoch)


def test_the_past_is_what_was(directory: Path) -> None:
    past: dict[int, Seen] = {}
    for seed in range(4):
        live(directory, past, seed, 12)
        for mode in ("w", "r"):
            with hw.connect(directory, mode=mode) as session:
                chosen = random.Random(seed).sample(sorted(past), 5)
                check_past(session, past, [min(past), max(past), *chosen])


@pytest.mark.slow
def test_all_of_the_past_is_what_was(directory: Path) -> None:
    past: dict[int, Seen] = {}
    for seed in range(8):
        live(directory, past, seed, 30)
    for mode in ("w", "r"):
        with hw.connect(directory, mode=mode) as session:
            check_past(session, past, sorted(past))


def test_queries_of_the_past(directory: Path, spark: SparkSession) -> None:
    past: dict[int, Seen] = {}
    for seed in (0, 2):
        live(directory, past, seed, 6)
    with hw.connect(directory, spark=spark) as session:
        for epoch in (min(past), min(past) + 5, max(past)):
            assert Counter(map(tuple, session.at(epoch).sql(shop.VIEWS["unsold"]).rows())) == past[epoch]["unsold"]
            (joined,) = session.at(epoch).sql("SELECT SUM(sold), COUNT(*) FROM revenue JOIN brands ON name = brand").rows()
            revenue, brands = past[epoch]["revenue"], past[epoch]["brands"]
            pairs = [(r, count) for r in revenue for b, count in brands.items() if b[0] == r[0]]
            assert tuple(joined) == (sum(r[2] * count for r, count in pairs), sum(count for _, count in pairs))
        with pytest.raises(UnknownEpoch):
            session.at(max(past) + 1)


def test_a_number_of_epochs_is_kept(directory: Path) -> None:
    past: dict[int, Seen] = {}
    for seed in range(3):
        live(directory, past, 2 * seed, 30, retain=20)
    with hw.connect(directory, retain=20) as session:
        check_past(session, past, [session.epoch - back for back in (20, 13, 1, 0)])
        with pytest.raises(HistoryGone, match="are kept from epoch"):
            session.view("best").at(min(past))
        with pytest.raises(HistoryGone, match="are kept from epoch"):
            list(session.view("best").changes(since=min(past)))
        with pytest.raises(HistoryGone, match="are kept from epoch"):
            session.table("orders").at(min(past))


def test_changes_of_an_age_are_kept(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    past: dict[int, Seen] = {}
    live(directory, past, 0, 20, retain="1 hour")
    with hw.connect(directory, retain="1 hour") as session:
        check_past(session, past, [min(past)])
    now = store.time
    monkeypatch.setattr(store, "time", lambda: now() + 4_000)
    start = max(past)
    live(directory, past, 2, 20, retain="1 hour")
    with hw.connect(directory, retain="2 hours") as session:
        check_past(session, past, [session.epoch])
        with pytest.raises(HistoryGone):
            session.view("best").at(min(past))
    assert start > min(past)


def test_before_there_was_a_view(directory: Path) -> None:
    with hw.connect(directory) as session:
        catalog, start = session.snapshot.catalog, session.epoch
        session.drop_view("strong")
        session.insert("brands", [("acme", "q")])
        session.epochs.define(catalog, ("strong",))
        began = session.epoch
        session.insert("brands", [("acme", "r")])
        rows = session.view("strong").at(began).rows()
    for mode in ("w", "r"):
        with hw.connect(directory, mode=mode) as session:
            assert Counter(map(tuple, session.view("strong").at(began).rows())) == Counter(map(tuple, rows))
            for epoch in (start, began - 1):
                with pytest.raises(UnknownEpoch, match=f"is there from epoch {began} on"):
                    session.view("strong").at(epoch)
            assert next(epoch for epoch, _ in session.view("strong").changes(since=start)) == began
