"""What batches say: each form is compared with the rows that a plain replay of the same changes leaves."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.sources.applying import apply
from headwater.sources.events import coming, form_of
from headwater.sources.postgres import captured
from headwater.sources.postgres.texts import read

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    Change = tuple[str, tuple[int, str] | None, tuple[int, str] | None]

ROW = pa.struct([("id", pa.int64()), ("name", pa.string())])


def script(seed: int, count: int) -> list[Change]:
    """A history of one table: the kind of each change, the row before and the row after."""
    chance = random.Random(seed)
    rows: dict[int, str] = {}
    changes: list[Change] = []
    for _ in range(count):
        key, name = chance.randrange(6), chance.choice("abc")
        if key not in rows:
            changes.append(("c", None, (key, name)))
            rows[key] = name
        elif chance.random() < 0.5:
            changes.append(("d", (key, rows.pop(key)), None))
        else:
            changes.append(("u", (key, rows[key]), (key, name)))
            rows[key] = name
    return changes


def replayed(changes: list[Change]) -> Counter[tuple[int, str]]:
    found: Counter[tuple[int, str]] = Counter()
    for _, before, after in changes:
        found.update([] if after is None else [after])
        found.subtract([] if before is None else [before])
    return +found


def as_envelopes(changes: list[Change]) -> pa.Table:
    rows = [{"op": op, "before": _row(before), "after": _row(after)} for op, before, after in changes]
    tombstone = {"op": None, "before": None, "after": None}
    return pa.Table.from_pylist([*rows, tombstone], pa.schema([("op", pa.string()), ("before", ROW), ("after", ROW)]))


def as_change_types(changes: list[Change]) -> pa.Table:
    told = []
    for version, (op, before, after) in enumerate(changes):
        kinds = ("update_preimage", "update_postimage") if op == "u" else ("delete", "insert")
        for kind, row in zip(kinds, (before, after), strict=True):
            if row is not None:
                told.append({"id": row[0], "name": row[1], "_change_type": kind, "_commit_version": version})
    random.Random(1).shuffle(told)
    return pa.Table.from_pylist(told)


def as_signs(changes: list[Change]) -> pa.Table:
    told = [
        {"id": row[0], "name": row[1], "_op": sign}
        for _, before, after in changes
        for sign, row in (("-", before), ("+", after))
        if row is not None
    ]
    return pa.Table.from_pylist(told)


def as_weights(changes: list[Change]) -> pa.Table:
    signs = as_signs(changes)
    weights = [1 if sign == "+" else -1 for sign in signs.column("_op").to_pylist()]
    return signs.drop_columns(["_op"]).append_column("_weight", pa.array(weights))


def _row(row: tuple[int, str] | None) -> dict[str, Any] | None:
    return None if row is None else {"id": row[0], "name": row[1]}


@pytest.mark.parametrize("form", [as_envelopes, as_change_types, as_signs, as_weights], ids=lambda form: form.__name__)
@pytest.mark.parametrize("key", ["id", None], ids=["keyed", "bag"])
def test_every_form_leaves_what_a_replay_leaves(
    spark: SparkSession, form: Callable[[list[Change]], pa.Table], key: str | None
) -> None:
    session = hw.connect(spark=spark)
    session.create_table("t", "id BIGINT, name STRING", key=key)
    changes = script(seed=7, count=60)
    for start in range(0, len(changes), 13):
        batch = form(changes[start : start + 13])
        with session.transaction() as transaction:
            entry = session.table_entry("t")
            applied = apply(transaction.staging, entry, form_of(batch.column_names)(batch), "cdc")
            assert applied.bad == {}
        assert Counter(session.table("t").rows()) == replayed(changes[: start + 13])


def applied(session: hw.Session, rows: pa.Table, mode: str) -> dict[int, str]:
    with session.transaction() as transaction:
        events = form_of(rows.column_names)(rows) if mode == "cdc" else coming(rows)
        return apply(transaction.staging, session.table_entry("t"), events, mode).bad


def test_rows_that_a_table_cannot_take_are_named_and_the_others_taken(spark: SparkSession) -> None:
    session = hw.connect(spark=spark)
    session.create_table("t", "id INT NOT NULL, name STRING", key="id")
    session.insert("t", [(1, "here")])
    rows = pa.table({"id": pa.array([1, 2, 2, None, 1 << 40, 3], pa.int64()), "name": list("abcdef")})
    bad = applied(session, rows, "append")
    assert sorted(session.table("t").rows()) == [(1, "here"), (2, "b"), (3, "f")]
    assert list(bad) == [4, 3, 2, 0]
    assert "a row with its key is there already" in bad[0]
    assert "comes more than once" in bad[2]
    assert "column 'id' is in the key and has no value" in bad[3]
    assert "column 'id' is int32" in bad[4]


def test_of_rows_with_one_key_the_last_is_kept(spark: SparkSession) -> None:
    session = hw.connect(spark=spark)
    session.create_table("t", "id BIGINT, name STRING", key="id")
    assert applied(session, pa.table({"id": [1, 2, 1], "name": ["a", "b", "c"]}), "upsert") == {}
    assert sorted(session.table("t").rows()) == [(1, "c"), (2, "b")]


def test_of_a_bag_no_more_goes_than_there_is(spark: SparkSession) -> None:
    session = hw.connect(spark=spark)
    session.create_table("t", "id BIGINT")
    session.insert("t", [(1,), (1,)])
    rows = pa.table({"id": [1, 1, 1, 2, 3], "_op": ["-", "-", "-", "-", "?"]})
    bad = applied(session, rows, "cdc")
    assert session.table("t").rows() == []
    assert bad == {2: "it went, but is not there", 3: "it went, but is not there", 4: "'?' is no change that is known"}


def test_a_stream_that_says_nothing_of_changes_is_refused() -> None:
    with pytest.raises(hw.InvalidStream, match="no column says what a row does"):
        form_of(["id", "name"])


def test_values_that_were_not_sent_are_those_of_the_row_before(spark: SparkSession) -> None:
    session = hw.connect(spark=spark)
    session.create_table("t", "id BIGINT, a STRING, b STRING", key="id")
    session.insert("t", [(1, "a1", "b1"), (2, "a2", "b2"), (9, "a9", "b9")])
    kind = pa.map_(pa.string(), pa.string())
    told = [
        # Of the table; of a row that has another key now; of a row in the batch; of one that came with the batch.
        ("u", None, [("id", "1"), ("b", "new")]),
        ("u", [("id", "2")], [("id", "3"), ("b", "moved")]),
        ("u", [("id", "3")], [("id", "4"), ("a", None)]),
        ("c", None, [("id", "5"), ("a", "a5"), ("b", "b5")]),
        ("u", None, [("id", "5"), ("a", "again")]),
        ("u", [("id", "9"), ("a", "a9"), ("b", "old")], [("id", "9"), ("a", "full")]),
        ("u", None, [("id", "77"), ("a", "nobody")]),
    ]
    batch = pa.table(
        {
            "table": ["public.t"] * len(told),
            "op": [op for op, _, _ in told],
            "before": pa.array([before for _, before, _ in told], kind),
            "after": pa.array([after for _, _, after in told], kind),
        }
    )
    found = captured.of_table(batch, "public.t")
    assert found is not None
    with session.transaction() as transaction:
        events, absent = captured.typed(found, session.table_entry("t"))
        bad = apply(transaction.staging, session.table_entry("t"), events, "cdc", absent).bad
    assert sorted(session.table("t").rows()) == [
        (1, "a1", "new"),
        (4, None, "moved"),
        (5, "again", "b5"),
        (9, "full", "old"),
    ]
    assert bad == {6: "column 'b' was not sent, and the row is not there"}


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (pa.int32(), "-7", -7),
        (pa.decimal128(6, 2), "1.5", Decimal("1.50")),
        (pa.float64(), "-Infinity", float("-inf")),
        (pa.float64(), "0.000", 0.0),
        (pa.float32(), "0.5", 0.5),
        (pa.bool_(), "t", True),
        (pa.binary(), "\\x00ff", b"\x00\xff"),
        (pa.date32(), "2024-02-29", date(2024, 2, 29)),
        (pa.timestamp("us", "UTC"), "2024-02-29 12:00:00.1+02", datetime(2024, 2, 29, 10, 0, 0, 100_000, UTC)),
        (pa.list_(pa.string()), '{a,NULL,"NULL","","b \\"c\\", {"}', ["a", None, "NULL", "", 'b "c", {']),
        (pa.list_(pa.int64()), "{}", []),
        (pa.list_(pa.bool_()), "{t,f,NULL}", [True, False, None]),
        (pa.list_(pa.binary()), '{"\\\\x01"}', [b"\x01"]),
    ],
)
def test_texts_of_postgres_are_values(kind: pa.DataType, text: str, value: object) -> None:
    assert read(pa.array([None, text, None]), kind).to_pylist() == [None, value, None]
    assert read(pa.array(["?", text]).slice(1), kind).to_pylist() == [value]


@pytest.mark.parametrize(
    ("ddl", "good", "bad"),
    [
        ("INT", "1", "3000000000"),
        ("DECIMAL(6, 2)", "1.50", "1.005"),
        ("DOUBLE", "Infinity", "1e400"),
        ("FLOAT", "0", "1e-60"),
        ("BINARY", "\\x01", "01"),
        ("DATE", "2024-01-01", "infinity"),
        ("ARRAY<STRING>", "{a,b}", "{{a},{b}}"),
        ("ARRAY<INT>", "{1}", "[0:0]={1}"),
    ],
)
def test_texts_of_postgres_that_a_table_cannot_take_are_named(spark: SparkSession, ddl: str, good: str, bad: str) -> None:
    session = hw.connect(spark=spark)
    session.create_table("t", f"id BIGINT, a {ddl}", key="id")
    rows = pa.array(
        [[("id", str(i)), ("a", text)] for i, text in enumerate([good, bad, None])], pa.map_(pa.string(), pa.string())
    )
    batch = pa.table({"table": ["public.t"] * 3, "op": ["c"] * 3, "before": pa.nulls(3, rows.type), "after": rows})
    found = captured.of_table(batch, "public.t")
    assert found is not None
    with session.transaction() as transaction:
        entry = session.table_entry("t")
        applied = apply(transaction.staging, entry, captured.typed(found, entry)[0], "cdc")
    assert list(applied.bad) == [1]
    assert "column 'a'" in applied.bad[1]
    assert sorted(row[0] for row in session.table("t").rows()) == [0, 2]
