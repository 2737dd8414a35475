"""Tables and a view in a directory, put together by hand, without Spark, and what they should hold after every epoch."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from small_tables import KINDS, PAIRS, Row, arranged, bag, batch, catalog, table, view

from headwater.operators.join import Join, JoinKey
from headwater.runtime.epochs import Epochs
from headwater.runtime.transactions import Staging
from headwater.store import lease
from headwater.store.store import Retention, Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.compiler.dataflow import Step
    from headwater.runtime.catalog import Catalog, Snapshot
    from headwater.store.disk import Disk


def decode(views: Sequence[str]) -> tuple[Catalog, dict[int, Step]]:
    found = made(views)
    return found, dict(enumerate(found.steps))


def made(views: Sequence[str]) -> Catalog:
    """Two tables and joins of them."""
    tables = {name: table(name, PAIRS) for name in "rs"}
    left, right = (arranged(entry.source, (0,)) for entry in tables.values())
    join = Join(KINDS + KINDS, JoinKey((0,), (0,), (False,)), 2, 2)
    return catalog(*tables.values(), *(view(name, join, (left, right)) for name in views))


def encode(present: Catalog) -> list[str]:
    return list(present.views)


class Directory:
    """A session's worth of epochs in a directory."""

    def __init__(self, disk: Disk, durability: str = "sync", retention: Retention = Retention()) -> None:  # noqa: B008
        self.store = Store(disk, durability, retention)
        self.epochs = Epochs(self.store.snapshot(decode))
        self.epochs.history.restart(self.now.epoch, self.store.began)
        for damage in self.store.missing():
            self.epochs.set_aside(damage)
        for record in self.store.tail():
            self.epochs.replay(record.tables)
            assert self.epochs.now.epoch == record.epoch
        self.epochs.journal = self.store
        self.store.attach(self.epochs, encode)

    @property
    def now(self) -> Snapshot:
        return self.epochs.now

    def define(self, *views: str) -> None:
        """The tables, with these views; as a real compiler does, steps that are there are used again."""
        old = self.now.catalog
        new = made(views)
        if old.entries:
            entries = {name: entry for name, entry in old.entries.items() if name in new.entries}
            known = {step.inputs[0]: step for step in old.steps if step.label == "Arrange" and step.operator.key == (0,)}
            sources = [old.tables[name].source for name in "rs"]
            left, right = (known[source] if source in known else arranged(source, (0,)) for source in sources)
            join = Join(KINDS + KINDS, JoinKey((0,), (0,), (False,)), 2, 2)
            new = catalog(*entries.values(), *(view(name, join, (left, right)) for name in views if name not in entries))
        self.epochs.define(new, [name for name in new.views if name not in old.views])

    def edit(self, inserted: dict[str, list[Row]], deleted: dict[str, list[Row]] | None = None) -> int:
        staging = Staging(self.now)
        for name, rows in (deleted or {}).items():
            staging.delete(self.now.tables[name], batch(rows, KINDS))
        for name, rows in inserted.items():
            staging.insert(self.now.tables[name], batch(rows, KINDS))
        return self.epochs.commit(*staging.net())

    def content(self) -> dict[str, Counter[Row]]:
        return {name: bag(self.now.contents(entry)) for name, entry in self.now.entries.items()}

    def close(self) -> None:
        self.store.close()


def expected(content: dict[str, Counter[Row]]) -> Counter[Row]:
    """What a join of the tables holds."""
    found: Counter[Row] = Counter()
    for left, count in content["r"].items():
        for right, times in content["s"].items():
            if left[0] == right[0]:
                found[*left, *right] += count * times
    return found


def check(directory: Directory) -> None:
    """Every view is what the tables say."""
    content = directory.content()
    for name in directory.now.views:
        assert content[name] == expected(content), name


class Work:
    """Random changes, and the content after each epoch that was acknowledged."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.acknowledged: dict[int, dict[str, Any]] = {}
        self.rows: dict[str, list[Row]] = {"r": [], "s": []}

    def run(self, directory: Directory, steps: int = 12) -> None:
        if not directory.now.entries:
            directory.define()
            self.note(directory)
        for step in range(steps):
            if step == 3 and not directory.now.views:
                directory.define("joined")
            elif step == 7 and len(directory.now.views) == 1:
                directory.define("joined", "again")
            elif step == 9:
                directory.store.fold()
            else:
                self.edit(directory)
            self.note(directory)

    def edit(self, directory: Directory) -> None:
        content = directory.content()
        inserted = {name: [(self.random.randrange(3), self.random.randrange(9)) for _ in range(3)] for name in "rs"}
        deleted = {}
        for name in "rs":
            present = sorted(content[name].elements())
            deleted[name] = self.random.sample(present, min(len(present), 2))
        directory.edit(inserted, deleted)

    def note(self, directory: Directory) -> None:
        self.acknowledged[directory.now.epoch] = directory.content()


def bury(disk: Disk) -> None:
    """Makes it known that the holder of the lease is dead."""
    holder = lease.current(disk)
    if holder is not None:
        lease._put(disk, replace(holder, started="long ago"))


def reopened(disk: Disk, work: Work) -> None:
    """The directory holds an epoch that was acknowledged, the last one or one that was about to be; and it goes on."""
    bury(disk)
    directory = Directory(disk)
    last = max(work.acknowledged, default=0)
    assert directory.now.epoch in (last, last + 1)
    check(directory)
    if directory.now.epoch == last and last:
        assert directory.content() == work.acknowledged[last]
    work.acknowledged = {epoch: content for epoch, content in work.acknowledged.items() if epoch <= directory.now.epoch}
    work.run(directory, 3)
    check(directory)
    directory.close()
    directory = Directory(disk)
    assert directory.content() == work.acknowledged[directory.now.epoch]
    directory.close()


def killed(disk: Disk, work: Work) -> None:
    """A writer that goes on until it is stopped."""
    directory = Directory(disk)
    for _ in range(20):
        work.run(directory)
