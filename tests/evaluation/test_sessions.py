"""Merged session windows against a plain loop over the rows of each group."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest

from headwater.errors import EvaluationFailed
from headwater.evaluation.sessions import merged_sessions

TIME = pa.timestamp("us", "UTC")
WINDOW = pa.struct([("start", TIME), ("end", TIME)])


def batch(rows: list[tuple[int | None, str | None, int, int]]) -> pa.RecordBatch:
    windows = pa.array([{"start": start, "end": start + gap} for *_, start, gap in rows], WINDOW)
    columns = [pa.array([row[0] for row in rows], pa.int32()), pa.array([row[1] for row in rows], pa.string()), windows]
    return pa.RecordBatch.from_arrays(columns, names=["c0", "c1", "c2"])


def naive(rows: list[tuple[int | None, str | None, int, int]], keys: tuple[int, ...]) -> list[tuple[int, int]]:
    groups = defaultdict(list)
    for place, row in enumerate(rows):
        groups[tuple(row[key] for key in keys)].append(place)
    found = [(0, 0)] * len(rows)
    for members in groups.values():
        session: list[int] = []
        for place in [*sorted(members, key=lambda i: rows[i][2]), None]:
            end = max((rows[i][2] + rows[i][3] for i in session), default=0)
            if session and (place is None or rows[place][2] > end):
                for i in session:
                    found[i] = rows[session[0]][2], end
                session = []
            session += [] if place is None else [place]
    return found


@pytest.mark.parametrize("keys", [(), (0,), (0, 1)])
def test_sessions_equal_a_plain_loop(keys: tuple[int, ...]) -> None:
    random = np.random.default_rng(7)
    for count in (0, 1, 2, 5, 60):
        picked = zip(random.integers(0, 3, count), random.integers(0, 3, count), random.integers(-40, 40, count), strict=True)
        rows = [
            (int(a) or None, "xyz"[b] if b else None, int(start), int(gap))
            for (a, b, start), gap in zip(picked, random.integers(1, 6, count), strict=True)
        ]
        merged = merged_sessions(batch(rows), keys, 2)
        assert merged.num_columns == 4
        assert merged.column(3).type == WINDOW
        bounds = [merged.column(3).field(i).cast(pa.int64()).to_pylist() for i in range(2)]
        assert list(zip(*bounds, strict=True)) == naive(rows, keys)


def test_windows_that_touch_are_one_session_and_a_microsecond_apart_are_two() -> None:
    rows = [(1, None, 0, 5), (1, None, 5, 5), (1, None, 11, 1)]
    merged = merged_sessions(batch(rows), (0,), 2).column(3).field(1).cast(pa.int64()).to_pylist()
    assert merged == [10, 10, 12]


def test_a_window_that_is_null_is_refused_as_by_spark() -> None:
    windows = pa.array([None], WINDOW)
    with pytest.raises(EvaluationFailed, match="session window is NULL"):
        merged_sessions(pa.RecordBatch.from_arrays([windows], names=["c0"]), (), 0)
