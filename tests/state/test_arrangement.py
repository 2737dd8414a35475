"""The arrangement against a dictionary: random inserts and retractions, lookups after each, and every old value asked again."""

from __future__ import annotations

from collections import defaultdict
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from state_samples import KEPT_TYPES, as_key, batch, batches, identities, meanings, poor_hash

from headwater.delta import Delta, positional, without_columns
from headwater.state import arrangement as arrangement_module
from headwater.state import columns, compaction, runs
from headwater.state.arrangement import Arrangement, Matches
from headwater.state.blocks import Block, format_of

Model = dict[Any, list[int]]
"""Every row's weight, as a list also where it is a number."""


def weights_of(result: Delta | Matches) -> list[list[int]]:
    return result.weights.reshape(len(result.weights), -1).tolist() if len(result.weights) else []


def added(model: Model, delta: Delta) -> Model:
    total = defaultdict(lambda: [0] * len(weights_of(delta)[0]), {row: list(weight) for row, weight in model.items()})
    for row, weight in zip(identities(delta.rows), weights_of(delta), strict=True):
        total[row] = [a + b for a, b in zip(total[row], weight, strict=True)]
    return {row: weight for row, weight in total.items() if any(weight)}


def as_model(delta: Delta) -> Model:
    rows = identities(delta.rows)
    assert len(set(rows)) == len(rows), "not consolidated"
    return dict(zip(rows, weights_of(delta), strict=True))


def found(matches: Matches) -> Model:
    """Weights of the pairs of probe and row; those that occur several times summed."""
    assert len(matches) == len(matches.probe) == matches.rows.num_rows == len(matches.weights)
    total: Model = {}
    for asked, row, weight in zip(matches.probe.tolist(), identities(matches.rows), weights_of(matches), strict=True):
        old = total.get((asked, row), [0] * len(weight))
        total[asked, row] = [a + b for a, b in zip(old, weight, strict=True)]
    return {pair: weight for pair, weight in total.items() if any(weight)}


def expected_matches(model: Model, key: list[int], probe: pa.RecordBatch, columns: list[int]) -> Model:
    return {
        (asked, row): weight
        for asked, wanted in enumerate(meanings(probe))
        for row, weight in model.items()
        if [as_key(row[i]) for i in key] == [wanted[i] for i in columns]
    }


@st.composite
def deltas(draw: st.DrawFn, types: list[pa.DataType], width: int | None) -> Delta:
    rows = draw(batches(types))
    size = rows.num_rows * (width or 1)
    weights = np.array(draw(st.lists(st.integers(-2, 2), min_size=size, max_size=size)), np.int64)
    return Delta(rows, weights if width is None else weights.reshape(-1, width))


@pytest.mark.parametrize("bits", [64, 2, 0])
@pytest.mark.parametrize("width", [None, 2])
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
def test_behaves_as_a_dictionary(bits: int, width: int | None, data: st.DataObject) -> None:
    types = data.draw(st.lists(KEPT_TYPES, max_size=3))
    key = data.draw(st.permutations(range(len(types)))) if types else []
    key = key[: data.draw(st.integers(0, len(key)))]
    arrangement, model = Arrangement.empty(batch(types, []).schema, key, width), {}
    history = [(arrangement, model)]
    few = data.draw(st.sampled_from([0, 8, runs.FEW]))
    whole = data.draw(st.sampled_from([0, arrangement_module._WHOLE]))
    with poor_hash(bits), mock.patch.object(runs, "FEW", few), mock.patch.object(arrangement_module, "_WHOLE", whole):
        for delta in data.draw(st.lists(deltas(types, width), max_size=6)):
            arrangement, model = arrangement.insert(delta), added(model, delta) if len(delta) else model
            history.append((arrangement, model))
            check_lookup(arrangement, model, data.draw(batches(types)))
        for old, known in data.draw(st.permutations(history)):
            assert as_model(old.contents()) == known
            check_lookup(old, known, data.draw(batches(types)))
            change = as_model(arrangement.difference(old))
            assert added(known, arrangement.difference(old)) == model if change else known == model


def check_lookup(arrangement: Arrangement, model: Model, probe: pa.RecordBatch) -> None:
    matches = arrangement.lookup(probe, arrangement.key)
    expected = expected_matches(model, list(arrangement.key), probe, list(arrangement.key))
    assert found(matches) == expected
    settled = matches.consolidated()
    assert found(settled) == expected
    assert len(settled) == len(expected)
    assert matches.rows.schema == settled.rows.schema == arrangement.schema
    assert matches.weights.shape[1:] == settled.weights.shape[1:] == (() if arrangement.width is None else (arrangement.width,))
    if arrangement.width is None:
        assert arrangement.weights_of(probe).tolist() == [model.get(row, [0])[0] for row in identities(probe)]


def numbers(*values: int) -> Delta:
    return Delta.inserting(batch([pa.int64(), pa.string()], [(value, f"row {value}") for value in values]))


def test_an_old_value_is_not_touched_by_inserts_into_it() -> None:
    base = Arrangement.empty(numbers(0).schema, (0,)).insert(numbers(*range(100)))
    before = base.contents()
    longer, emptied = base.insert(numbers(*range(50, 150))), base.insert(-numbers(*range(100)))
    assert len(longer.contents()) == 150
    assert len(emptied.contents()) == 0
    assert base.contents().rows.equals(before.rows)
    assert as_model(base.contents()) == {(i, f"row {i}"): [1] for i in range(100)}


def test_the_probe_may_have_its_key_elsewhere_and_in_another_order() -> None:
    rows = batch([pa.int32(), pa.string(), pa.float64()], [(1, "a", 0.5), (1, "b", 1.5), (2, "a", 2.5)])
    arrangement = Arrangement.empty(rows.schema, (1, 0)).insert(Delta.inserting(rows))
    probe = batch([pa.int32(), pa.int8(), pa.string()], [(2, 0, "a"), (7, 0, "a"), (1, 0, "b"), (2, 0, "a")])
    matches = arrangement.lookup(probe, [2, 0])
    assert sorted(zip(matches.probe.tolist(), matches.rows.column(2).to_pylist(), strict=True)) == [
        (0, 2.5),
        (2, 1.5),
        (3, 2.5),
    ]


def test_a_retraction_in_a_later_run_cancels_in_the_sum_and_vanishes_when_consolidated() -> None:
    arrangement = Arrangement.empty(numbers(0).schema, (0,)).insert(numbers(*range(1000))).insert(-numbers(7))
    matches = arrangement.lookup(numbers(7, 8).rows, [0])
    assert sorted(zip(matches.probe.tolist(), matches.weights.tolist(), strict=True)) == [(0, -1), (0, 1), (1, 1)]
    settled = matches.consolidated()
    assert (settled.probe.tolist(), settled.weights.tolist()) == ([1], [1])


@pytest.mark.parametrize("key", [(), (0,), (0, 1)])
def test_equal_rows_of_a_large_delta_are_one_row(key: tuple[int, ...]) -> None:
    values = [*range(1000), *([7] * 500), *([8] * 600)]
    arrangement = Arrangement.empty(numbers(0).schema, key).insert(numbers(*values))
    expected = {(i, f"row {i}"): [1] for i in range(1000)} | {(7, "row 7"): [501], (8, "row 8"): [601]}
    assert as_model(arrangement.contents()) == expected
    assert arrangement.total == 2100
    if key:
        assert arrangement.weights_of(numbers(7, 9, 5000).rows).tolist() == [501, 1, 0]


def test_weights_that_are_all_the_same_take_no_room() -> None:
    few, many = (Arrangement.empty(numbers(0).schema, (0,)).insert(numbers(*range(n))) for n in (1000, 2000))
    assert many.total == 2000
    words, text = 8 * 3, 4 + len("row 1000")
    assert many.nbytes - few.nbytes < 1000 * (words + text + 1)
    assert as_model(many.insert(-numbers(*range(1000))).contents()) == {(i, f"row {i}"): [1] for i in range(1000, 2000)}


@pytest.mark.parametrize("few", [0, runs.FEW])
def test_there_are_few_runs_however_it_grew(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "FEW", few)
    arrangement = Arrangement.empty(numbers(0).schema, (0,))
    for i in range(1000):
        arrangement = arrangement.insert(numbers(3 * i, 3 * i + 1))
        assert len(arrangement._runs) <= 3 * (np.log(len(arrangement)) / np.log(4) + 1)
    assert len(arrangement) == 2000
    for i in range(1000):
        arrangement = arrangement.insert(-numbers(3 * i, 3 * i + 1))
    assert len(arrangement.contents()) == 0
    assert len(arrangement) == 0


def test_large_runs_are_merged_beside_and_taken_in_when_they_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "LARGE", 8)
    monkeypatch.setattr(runs, "FEW", 0)
    arrangement = Arrangement.empty(numbers(0).schema, (0,))
    model: Model = {}
    for i in range(200):
        delta = Delta.concat([numbers(2 * i, 2 * i + 1), -numbers(2 * i - 1)]) if i else numbers(0, 1)
        arrangement, model = arrangement.insert(delta), added(model, delta)
        if arrangement._merging is not None and i % 3:
            arrangement._merging.result.result()
        if i % 50 == 7:
            assert as_model(Arrangement(arrangement.schema, (0,), None, arrangement._runs).contents()) == model
    assert len(arrangement._runs) < 20
    assert as_model(arrangement.contents()) == model
    # Whoever needed all runs at once has merged them: what the background did is of no use any more.
    arrangement = arrangement.insert(numbers(10_000))
    assert as_model(arrangement.contents()) == added(model, numbers(10_000))


def test_a_handful_of_rows_joins_the_last_run() -> None:
    arrangement = Arrangement.empty(numbers(0).schema, (0,)).insert(numbers(*range(1000))).insert(numbers(2000, 2001))
    longer = arrangement.insert(Delta.concat([numbers(2002), -numbers(2000), -numbers(7)]))
    assert [len(run) for run in longer._runs] == [1000, 3]
    assert [len(run) for run in arrangement._runs] == [1000, 2]
    emptied = longer.insert(Delta.concat([-numbers(2001, 2002), numbers(7)]))
    assert [len(run) for run in emptied._runs] == [1000]
    assert as_model(emptied.contents()) == {(i, f"row {i}"): [1] for i in range(1000)}


def test_a_merge_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(compaction, "LARGE", 8)
    monkeypatch.setattr(runs, "FEW", 0)
    monkeypatch.setattr(arrangement_module, "_WHOLE", 0)
    arrangement = Arrangement.empty(numbers(0).schema, (0,))
    with monkeypatch.context() as broken:
        broken.setattr(runs, "merge", lambda *_: 1 / 0)
        for i in range(4):
            arrangement = arrangement.insert(numbers(*range(4 * i, 4 * i + 4)))
        assert arrangement._merging is not None
        assert arrangement._merging.result.exception() is not None
    arrangement = arrangement.insert(numbers(*range(100, 104)))
    assert "could not be merged" in caplog.text
    assert arrangement._merging is not None
    arrangement._merging.result.result()
    arrangement = arrangement.insert(numbers(200))
    assert [len(run) for run in arrangement._runs] == [4, 16, 1]


@pytest.mark.parametrize("wanted", [None, (), (1,), (1, 0)])
def test_a_large_probe_is_looked_up_in_pieces(wanted: tuple[int, ...] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Arrangement.empty(numbers(0).schema, (0,)).insert(numbers(*range(1000))).insert(-numbers(*range(0, 1000, 3)))
    probe = numbers(*range(500, 1100), 3, 3, 4).rows
    whole = store.lookup(probe, [0], wanted)
    monkeypatch.setattr(arrangement_module, "_AT_ONCE", 7)
    pieces = store.lookup(probe, [0], wanted)
    assert pieces.rows.schema == whole.rows.schema
    assert found(pieces) == found(whole)
    assert found(pieces.consolidated()) == found(whole.consolidated())


def test_without_a_key_every_row_is_found_by_every_probe() -> None:
    arrangement = Arrangement.empty(numbers(0).schema, ()).insert(numbers(1, 2)).insert(numbers(3))
    assert arrangement.lookup(without_columns(1), []).rows.equals(arrangement.contents().rows)
    matches = arrangement.lookup(without_columns(2), [])
    assert matches.probe.tolist() == [0, 0, 0, 1, 1, 1]
    assert sorted(matches.rows.column(0).to_pylist()) == [1, 1, 2, 2, 3, 3]
    assert len(arrangement.lookup(without_columns(0), [])) == 0


def test_rows_of_no_columns_are_one_row() -> None:
    arrangement = Arrangement.empty(pa.schema([]), ()).insert(Delta.inserting(without_columns(3)))
    arrangement = arrangement.insert(Delta.inserting(without_columns(2)))
    assert arrangement.contents().weights.tolist() == [5]
    settled = arrangement.lookup(without_columns(2), []).consolidated()
    assert (settled.probe.tolist(), settled.weights.tolist(), settled.rows.num_rows) == ([0, 1], [5, 5], 2)


def test_an_empty_one_answers() -> None:
    arrangement = Arrangement.empty(numbers(0).schema, (0,), width=3)
    assert arrangement.insert(Delta(numbers().rows, np.empty((0, 3), np.int64))) is arrangement
    assert arrangement.contents().weights.shape == (0, 3)
    assert arrangement.lookup(numbers(1).rows, [0]).consolidated().weights.shape == (0, 3)
    assert (len(arrangement), arrangement.nbytes) == (0, 0)


def test_what_does_not_fit_is_refused_at_once() -> None:
    arrangement = Arrangement.empty(numbers(0).schema, (0,))
    with pytest.raises(ValueError, match="shape"):
        arrangement.insert(Delta(numbers(1).rows, np.ones((1, 2), np.int64)))
    with pytest.raises(TypeError, match="came where"):
        arrangement.insert(Delta.inserting(batch([pa.string(), pa.string()], [("1", "row 1")])))
    with pytest.raises(ValueError, match="looked up"):
        arrangement.lookup(numbers(1).rows, [0, 1])


def test_names_are_those_of_the_schema() -> None:
    named = numbers(1).rows.rename_columns(["id", "text"])
    arrangement = Arrangement.empty(positional(named.schema), (0,)).insert(Delta.inserting(named)).insert(numbers(2))
    assert arrangement.contents().schema.names == ["c0", "c1"]


def test_views_are_stored_as_strings() -> None:
    viewed = numbers(1).rows.cast(pa.schema([("c0", pa.int64()), ("c1", pa.string_view())]))
    arrangement = Arrangement.empty(numbers().schema, (1,)).insert(Delta.inserting(viewed)).insert(numbers(1))
    assert arrangement.lookup(numbers(1).rows, [1]).consolidated().weights.tolist() == [2]
    assert arrangement.contents().schema == numbers().schema


def test_runs_of_large_types_answer_in_the_types_of_the_schema() -> None:
    types = [pa.string(), pa.list_(pa.string()), pa.map_(pa.string(), pa.binary()), pa.struct([("x", pa.binary())])]
    rows = batch(types, [(str(i), [str(i)], [(str(i), b"b")], {"x": b"x"}) for i in range(4)])
    made = format_of(tuple(types))
    small = runs.build(made, rows, np.ones(4, np.int64), (0,))
    others = tuple(array.cast(columns.enlarged(array.type)) for array in small.block.others)
    large = runs.Run(Block(small.block.words, others), small.weights, small.hashes)
    for pieces in ((large,), (large, small), (small, large)):
        arrangement = Arrangement(rows.schema, (0,), None, pieces)
        matches = arrangement.lookup(rows.slice(1, 2), [0]).consolidated()
        assert matches.rows.schema == rows.schema
        assert matches.weights.tolist() == [len(pieces)] * 2
        assert as_model(arrangement.contents()) == {row: [len(pieces)] for row in identities(rows)}
        assert arrangement.contents().schema == rows.schema


@pytest.mark.slow
@pytest.mark.parametrize("nested", [False, True])
def test_more_text_than_32_bits_can_count(*, nested: bool) -> None:
    size, count = 1 << 23, 130
    kind = pa.list_(pa.string()) if nested else pa.string()
    arrangement = Arrangement.empty(pa.schema([("c0", pa.int64()), ("c1", kind)]), (0,))
    for first in range(0, 2 * count, count):
        text = pa.array([str(i) + "x" * size for i in range(first, first + count)])
        column = pa.ListArray.from_arrays(pa.array(range(count + 1), pa.int32()), text) if nested else text
        rows = pa.RecordBatch.from_arrays([pa.array(range(first, first + count)), column], schema=arrangement.schema)
        arrangement = arrangement.insert(Delta.inserting(rows))
    assert len(arrangement._runs) == 2
    matches = arrangement.lookup(batch([pa.int64()], [(count + 7,)]), [0])
    assert matches.rows.schema == arrangement.schema
    assert str(matches.rows.column(1)[0].as_py()).strip("['")[:4] == "137x"
    contents = arrangement.contents()
    assert len(contents) == 2 * count
    assert contents.rows.column(0).to_numpy().sum() == 2 * count * (2 * count - 1) // 2
