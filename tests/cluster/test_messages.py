"""Messages: what goes in comes out, and every row is in one shard: that of its key, whoever asks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from state_samples import KEPT_TYPES, SAMPLES, batch, batches, identities

from headwater.cluster import messages
from headwater.cluster.messages import NEWS, NOTE, Message
from headwater.delta import Delta
from headwater.operators.operator import schema_of
from headwater.state import hashing
from headwater.state.arrangement import Arrangement
from headwater.state.blocks import format_of
from headwater.state.consolidation import consolidate
from headwater.state.runs import Run

COUNTS = st.integers(1, 9) | st.sampled_from([64, 1000])


def weighed(rows: pa.RecordBatch, width: int | None, seed: int) -> Delta:
    shape = (rows.num_rows,) if width is None else (rows.num_rows, width)
    return Delta(rows, np.random.default_rng(seed).integers(-(2**63), 2**63 - 1, shape, np.int64))


def require_same(found: Delta, sent: Delta) -> None:
    assert found.schema.types == sent.schema.types
    assert identities(found.rows) == identities(sent.rows)
    assert found.weights.shape == sent.weights.shape
    assert found.weights.tolist() == sent.weights.tolist()


@st.composite
def deltas(draw: st.DrawFn) -> Delta:
    types = draw(st.lists(KEPT_TYPES, max_size=4))
    return weighed(draw(batches(types)), draw(st.sampled_from([None, 1, 3])), draw(st.integers(0, 99)))


@given(deltas())
def test_what_is_packed_comes_out(delta: Delta) -> None:
    vectors = delta.weights.ndim > 1
    found = messages.unpacked(messages.packed(delta), vectors=vectors)
    require_same(found, delta)
    # Compiled loops take only what may be written to.
    assert found.weights.flags.writeable


@pytest.mark.parametrize("kind", [kind for kind in SAMPLES if kind != pa.string_view()], ids=str)
@pytest.mark.parametrize("width", [None, 1, 2])
def test_every_type(kind: pa.DataType, width: int | None) -> None:
    rows = batch([kind, kind], [(value, None) for value in SAMPLES[kind]])
    for part in (rows, rows.slice(1), rows.slice(0, 0)):
        delta = weighed(part, width, 5)
        require_same(messages.unpacked(messages.packed(delta), vectors=width is not None), delta)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(-2, 9), st.binary(max_size=9)), max_size=9))
def test_messages_go_through_rows(sent: list[tuple[int, int, int, bytes]]) -> None:
    given = [Message(*parts, pa.py_buffer(body)) for *parts, body in sent]
    rows = list(messages.sent(given))
    assert all(part.schema == rows[0].schema for part in rows)
    found = [(m.wave, m.shard, m.route, m.body.to_pybytes()) for m in messages.received(rows)]
    assert found == sent


def test_messages_leave_before_they_are_many() -> None:
    body = pa.py_buffer(bytes(3 << 20))
    assert [part.num_rows for part in messages.sent(Message(0, 0, 0, body) for _ in range(5))] == [2, 2, 1]


@pytest.mark.parametrize("shards", [0, np.zeros(60, np.int64)], ids=["one shard", "each its own"])
def test_long_rows_travel_a_few_at_a_time(shards: Any) -> None:
    delta = Delta.inserting(batch([pa.string(), pa.int64()], [(f"{i}" * 200_000, i) for i in range(60)]))
    found = list(messages.deltas(1, 0, delta, shards))
    assert len(found) > 2
    assert max(message.body.size for message in found) < 8 << 20
    require_same(Delta.concat([messages.unpacked(message.body, vectors=False) for message in found]), delta)


def test_bodies_lie_where_numbers_may() -> None:
    """A body may begin anywhere in a row, and numbers in it are read in place."""
    delta = weighed(batch([pa.int64()], [(1,), (2,)]), None, 1)
    rows = list(messages.sent([Message(0, 0, 0, pa.py_buffer(b"odd")), Message(0, 0, 1, messages.packed(delta))]))
    for message in messages.received(rows):
        if message.route == 1:
            assert message.body.address % 8 == 0
            require_same(messages.unpacked(message.body, vectors=False), delta)


def test_notes() -> None:
    note = Message.note(3, 1, {"runs": [[1, 2, "ä"]]})
    assert (note.wave, note.shard, note.route, note.content) == (3, 1, NOTE, {"runs": [[1, 2, "ä"]]})
    assert Message.note(0, 0, {}, NEWS).route == NEWS


# -- shards


@st.composite
def keyed(draw: st.DrawFn) -> tuple[Delta, tuple[int, ...]]:
    types = draw(st.lists(KEPT_TYPES, min_size=1, max_size=4))
    key = tuple(draw(st.permutations(range(len(types))))[: draw(st.integers(0, len(types)))])
    return weighed(draw(batches(types)), None, 3), key


@given(keyed(), COUNTS)
def test_a_row_goes_to_the_shard_of_its_key(given: tuple[Delta, tuple[int, ...]], count: int) -> None:
    delta, key = given
    shards = messages.shards_of(delta, key, count)
    assert shards.dtype == np.int64
    assert all(0 <= shard < count for shard in shards)
    parts = [(m.shard, messages.unpacked(m.body, vectors=False)) for m in messages.deltas(1, 2, delta, shards)]
    found: list[Any] = [None] * len(delta)
    rows = list(zip(identities(delta.rows), delta.weights.tolist(), strict=True))
    left = list(enumerate(rows))
    for shard, part in parts:
        for row in zip(identities(part.rows), part.weights.tolist(), strict=True):
            place = next(i for i, (number, other) in enumerate(left) if other == row and shards[number] == shard)
            found[left[place][0]] = shard
            del left[place]
    assert not left
    assert found == shards.tolist()


@given(keyed(), COUNTS)
def test_equal_keys_meet_wherever_they_stand(given: tuple[Delta, tuple[int, ...]], count: int) -> None:
    """The two sides of a join have the key in other places, among other columns."""
    delta, key = given
    other = delta.select(key) if key else delta
    there = tuple(range(len(key)))
    assert messages.shards_of(delta, key, count).tolist() == messages.shards_of(other, there, count).tolist()


@given(keyed(), COUNTS)
def test_shards_are_ranges_of_an_arrangement(given: tuple[Delta, tuple[int, ...]], count: int) -> None:
    """What `within` gives for a shard are the rows that are sent to it, but for the rows that are merged."""
    delta, key = given
    delta = Delta.inserting(delta.rows)
    by = key or tuple(range(delta.rows.num_columns))
    kept = Arrangement.empty(schema_of(delta.schema.types), key).insert(delta)
    shards = messages.shards_of(delta, by, count)
    for shard in {0, count // 2, count - 1, *shards.tolist()}:
        part = kept.within(shard, shard + 1, count)
        here = [row for row, at in zip(identities(delta.rows), shards, strict=True) if at == shard]
        found = [row for row, weight in zip(identities(part.rows), part.weights, strict=True) for _ in range(weight)]
        assert sorted(found, key=repr) == sorted(here, key=repr)


@pytest.mark.parametrize(("weight", "pieces"), [(1, 2), (2, 2), (-1, 1)])
def test_a_range_is_read_in_pieces_unless_rows_are_taken_back(weight: int, pieces: int) -> None:
    rows = batch([pa.int64(), pa.int64()], [(i, i % 7) for i in range(1000)])
    some = Delta(rows.slice(300, 400), np.full(400, weight, np.int64))
    schema = schema_of(rows.schema.types)
    runs = [run for part in (Delta.inserting(rows), some) for run in Arrangement.empty(schema, (0,)).insert(part).runs]
    kept = Arrangement(schema, (0,), None, tuple(runs))
    for shard in range(3):
        found = list(kept.pieces_within(shard, shard + 1, 3))
        assert len(found) == pieces
        require_same(consolidate(Delta.concat(found)), consolidate(kept.within(shard, shard + 1, 3)))
    assert not list(Arrangement.empty(schema, (0,)).pieces_within(0, 1, 3))


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7, 12, 1000])
def test_borders_of_shards(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Around each border, hashes are on the side on which the ranges of an arrangement have them."""
    borders = [(number << 64) // count for number in range(1, count)]
    near = {b + far * sign for b in [0, *borders, 2**64 - 1] for far in (0, 1, 2**31, 2**32, 2**33) for sign in (-1, 1)}
    hashes = np.array(sorted(h for h in near if 0 <= h < 2**64), np.uint64)
    monkeypatch.setattr(messages, "hash_rows", lambda *_: hashes)
    rows = batch([pa.int64()], [(i,) for i in range(len(hashes))])
    shards = messages.shards_of(Delta.inserting(rows), (0,), count)
    made = format_of((pa.int64(),))
    run = Run(made.pack(rows), np.ones(len(hashes), np.int64), hashes)
    kept = Arrangement(schema_of([pa.int64()]), (0,), None, (run,))
    for shard in range(count):
        found = kept.within(shard, shard + 1, count).rows.column(0).to_pylist()
        assert found == np.flatnonzero(shards == shard).tolist()


def test_hashes_are_told_apart_by_their_ranges() -> None:
    """Many rows spread evenly: no shard has much more than its share."""
    rows = batch([pa.int64()], [(i,) for i in range(10_000)])
    for count in (2, 3, 8):
        sizes = np.bincount(messages.shards_of(Delta.inserting(rows), (0,), count), minlength=count)
        assert sizes.min() > 0.8 * 10_000 / count
    assert hashing.hash_rows(rows, (0,)).dtype == np.uint64
