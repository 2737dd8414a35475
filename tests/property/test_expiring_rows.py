"""Random inserts, deletes, refreshes and advances of the clock, against plain lists and a plain fixpoint.

The twin keeps rows with their times in a list and looks through all of it; what views should have follows from what is left.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

import headwater as hw
from headwater import expiring
from tests.storing import copy_as_crashed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

STRATEGIES = (
    *("counting", "absorption-lazy", "absorption-eager", "relative", "dred", "recompute"),
    *("absorption-eager every 3 rows", "absorption-eager every 1 millisecond"),
)
START = datetime(2026, 3, 2, 12, tzinfo=UTC)
TTL = 10
REACHABLE = """
    WITH RECURSIVE r(src, dst) AS (
        SELECT src, dst FROM links UNION SELECT r.src, l.dst FROM r JOIN links l ON r.dst = l.src
    ) SELECT * FROM r"""


def moment(second: int | None) -> datetime | None:
    return None if second is None else START + timedelta(seconds=second)


@dataclass
class Twin:
    """The tables as lists of rows, each with the second from which it lives, None if for ever."""

    now: int = 0
    links: list[tuple[tuple[Any, ...], int]] = field(default_factory=list)
    seen: list[tuple[tuple[Any, ...], int | None]] = field(default_factory=list)
    nodes: dict[int, tuple[str, int]] = field(default_factory=dict)

    def expire(self) -> None:
        self.links = [(row, time) for row, time in self.links if time + TTL > self.now]
        self.seen = [(row, time) for row, time in self.seen if time is None or time + TTL > self.now]
        self.nodes = {key: (value, time) for key, (value, time) in self.nodes.items() if time + TTL > self.now}

    def reachable(self) -> Counter[tuple[Any, ...]]:
        edges = {row for row, _ in self.links}
        found = set(edges)
        while True:
            more = {(a, d) for a, b in found for c, d in edges if b == c} - found
            if not more:
                return Counter(found)
            found |= more

    def joined(self) -> Counter[tuple[Any, ...]]:
        return Counter((row[1], self.nodes[row[0]][0]) for row, _ in self.links if row[0] in self.nodes)

    def counted(self) -> Counter[tuple[Any, ...]]:
        return Counter(dict.fromkeys(Counter(row[0] for row, _ in self.seen).items(), 1))


def prepare(session: hw.Session) -> None:
    session.create_table("links", "src INT, dst INT", ttl=f"{TTL} seconds")
    session.create_table("seen", "a INT, ts TIMESTAMP", ttl=f"{TTL} seconds", event_time="ts")
    session.create_table("nodes", "id INT, name STRING", key="id", ttl=f"{TTL} seconds")
    for strategy in STRATEGIES:
        session.create_view(strategy, REACHABLE, strategy=strategy)
    session.create_view("joined", "SELECT l.dst, n.name FROM links l JOIN nodes n ON l.src = n.id")
    session.create_view("counted", "SELECT a, count(*) AS n FROM seen GROUP BY a")


def change(session: hw.Session, twin: Twin, rng: random.Random) -> None:
    """A few changes in one transaction, on the session and on the twin."""
    with session.transaction() as transaction:
        for _ in range(rng.choice((1, 2, 5))):
            what = rng.random()
            if what < 0.4:
                row = (rng.randrange(6), rng.randrange(6))
                twin.links.append((row, twin.now))
                transaction.insert("links", [row])
            elif what < 0.5 and twin.links:
                row = rng.choice(twin.links)[0]
                twin.links.remove(min((each for each in twin.links if each[0] == row), key=lambda each: each[1]))
                transaction.delete("links", [row])
            elif what < 0.75:
                second = rng.choice((None, twin.now, twin.now - rng.randrange(15), twin.now + rng.randrange(5)))
                row = (rng.randrange(4), moment(second))
                twin.seen.append((row, second))
                transaction.insert("seen", [row])
            elif what < 0.8 and twin.seen:
                row, _ = each = rng.choice(twin.seen)
                twin.seen.remove(each)
                transaction.delete("seen", [row])
            elif what < 0.95:
                key, name = rng.randrange(6), rng.choice("ab")
                twin.nodes[key] = name, twin.now
                transaction.upsert("nodes", [(key, name)])
            elif twin.nodes:
                key = rng.choice(list(twin.nodes))
                name, _ = twin.nodes.pop(key)
                transaction.delete("nodes", [(key, name)])


def advance(session: hw.Session, twin: Twin, rng: random.Random) -> None:
    by = rng.choice((0, 1, 1, 2, 3, 8, 25))
    twin.now += by
    twin.expire()
    session.advance(timedelta(seconds=by))


def compare(session: hw.Session, twin: Twin) -> None:
    assert Counter(session.table("links").rows()) == Counter(row for row, _ in twin.links)
    assert Counter(session.table("seen").rows()) == Counter(row for row, _ in twin.seen)
    assert Counter(session.table("nodes").rows()) == Counter((key, name) for key, (name, _) in twin.nodes.items())
    assert Counter(session.view("joined").rows()) == twin.joined()
    assert Counter(session.view("counted").rows()) == twin.counted()
    wanted = twin.reachable()
    for strategy in STRATEGIES:
        assert Counter(session.view(strategy).rows()) == wanted, strategy


def play(session: hw.Session, twin: Twin, rng: random.Random, rounds: int) -> None:
    for _ in range(rounds):
        change(session, twin, rng)
        compare(session, twin)
        if rng.random() < 0.6:
            advance(session, twin, rng)
            compare(session, twin)


def test_random_lives(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiring, "MOST", 3)
    with hw.connect(spark=spark, clock=START) as session:
        prepare(session)
        play(session, Twin(), random.Random(1), 40)


def test_random_lives_through_crashes(spark: SparkSession, tmp_path: Path) -> None:
    rng, twin = random.Random(2), Twin()
    session = hw.connect(tmp_path / "0", spark=spark, clock=START)
    prepare(session)
    for number in range(1, 4):
        play(session, twin, rng, 6)
        copy_as_crashed(session, tmp_path / f"{number - 1}", tmp_path / f"{number}")
        session.close()
        twin.now += 3
        twin.expire()
        session = hw.connect(tmp_path / f"{number}", spark=spark, clock=moment(twin.now) or START)
        compare(session, twin)
    session.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 20))
def test_many_random_lives(spark: SparkSession, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiring, "MOST", random.Random(seed).choice((1, 4, 20_000)))
    with hw.connect(spark=spark, clock=START) as session:
        prepare(session)
        play(session, Twin(), random.Random(seed), 150)
