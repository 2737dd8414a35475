"""Pathway: a connector feeds rows and deletions, commits, and waits until they have come out.

A marker goes with each change, a row of a group of its own that every view shows: when its new value is there and the time
that brought it has ended, so has the change.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from time import perf_counter

import pathway as pw
from outcome import changes, done, peak, plain, rows_of

MARKER = -1


class Row(pw.Schema):
    """A row of the large table."""

    id: int = pw.column_definition(primary_key=True)
    a: int
    b: int
    c: int


class Partner(pw.Schema):
    """A row of the table to join with."""

    ttid: int = pw.column_definition(primary_key=True)


class Feed(pw.io.python.ConnectorSubject):
    """Loads the table, then sends one change after the other, each when the last has come out."""

    def __init__(self, directory: Path, view: str) -> None:
        super().__init__()
        self._directory = directory
        self._ended = threading.Event()
        # A sum must be among the largest, and what is joined must pass the filter.
        self._marker = 10**12 if view == "top-k" else 0
        self._seen = 0
        self.load = 0.0
        self.times: dict[int, list[float]] = {}

    def run(self) -> None:
        base = rows_of(self._directory / "r.parquet")
        self.load = self._timed([], base.to_batches(100_000))
        for size, going, coming in changes(self._directory):
            took = self._timed(list(_rows(going)), [coming])
            self.times.setdefault(size, []).append(took)

    def _timed(self, going: list[dict[str, int]], coming: list) -> float:
        # Rows of a change are made beforehand; those of the load, of which there are many, while they are sent.
        ready = list(_rows(coming[0])) if going else (row for batch in coming for row in _rows(batch))
        self._ended.clear()
        started = perf_counter()
        for row in going:
            self.delete(**row)
        for row in ready:
            self.next(**row)
        if going:
            self.delete(id=MARKER, a=MARKER, b=self._marker, c=0)
        self._marker += 1
        self.next(id=MARKER, a=MARKER, b=self._marker, c=0)
        self.commit()
        self._ended.wait()
        return perf_counter() - started

    def seen(self, value: float) -> None:
        """The output has this value of the marker."""
        self._seen = int(value)

    def ended(self, _time: int) -> None:
        """The output has all of a time."""
        if self._seen == self._marker:
            self._ended.set()


def _rows(rows) -> list[dict[str, int]]:  # noqa: ANN001
    names, values = zip(*plain(rows).items(), strict=True)
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


class Partners(pw.io.python.ConnectorSubject):
    """The small table, sent once."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = directory

    def run(self) -> None:
        for ttid in [*plain(rows_of(self._directory / "s.parquet"))["ttid"], MARKER]:
            self.next(ttid=ttid)
        self.commit()


def answer(view: str, r: pw.Table, s: pw.Table) -> pw.Table:
    """The view, with its group as `a`; the top ten as one row."""
    if view == "top-k":
        sums = r.groupby(r.a).reduce(r.a, v=pw.reducers.sum(r.b))
        pairs = sums.select(pair=pw.make_tuple(-sums.v, sums.a))
        # One place more, for the marker.
        return pairs.reduce(top=pw.reducers.sorted_tuple(pairs.pair)).select(top=pw.apply(lambda top: top[:11], pw.this.top))
    if view == "join":
        kept = r.filter(r.b < 900)
        r = kept.join(s, kept.a == s.ttid).select(pw.left.a, pw.left.b, pw.left.c)
    means = r.groupby(r.a).reduce(r.a, v=pw.reducers.avg(r.b), c=pw.reducers.avg(r.c))
    return means.filter(pw.this.c < 1000).select(pw.this.a, pw.this.v)


def main(directory: Path, view: str) -> None:
    feed = Feed(directory, view)
    r = pw.io.python.read(feed, schema=Row, autocommit_duration_ms=None)
    s = pw.io.python.read(Partners(directory), schema=Partner, autocommit_duration_ms=None)
    content: dict[object, list[tuple[float, int]]] = {}

    def change(key: object, row: dict, time: int, is_addition: bool) -> None:  # noqa: ARG001, FBT001
        # Within a time, what a row was may be taken away after what it is has come.
        found = [(-value, group) for value, group in row["top"]] if "top" in row else [(row["v"], row["a"])]
        if is_addition:
            content[key] = found
            for value, group in found:
                if group == MARKER:
                    feed.seen(value)
        elif content.get(key) == found:
            del content[key]

    pw.io.subscribe(answer(view, r, s), on_change=change, on_time_end=feed.ended)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    groups = [group for pairs in content.values() for _, group in pairs if group != MARKER]
    done(f"Pathway {pw.__version__}", feed.load, feed.times, groups, memory=peak())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
