"""The oracle: a live view must hold what Spark itself answers to the same query over the same tables, as a bag.

    view.arrow()  ≡  spark.sql(query)      column names, types, and every row as often as Spark has it

Spark's answer comes from a Spark session of its own, over plain data frames made from the tables' rows, so nothing of the
engine takes part in it. Two floats are equal when they differ by no more than one part in 10⁹ of the larger (sums of floats
depend on the order of their rows), and NaN equals NaN; but −0.0 is not 0.0, as anyone can see who divides by it. Maps are
equal in any order of their entries. Everything else is equal only when it is the same. Where the query has a top-level
ORDER BY, the sort keys must also come in Spark's order.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.functions import lit
from pyspark.sql.types import ArrayType, MapType, NullType, StructType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

RELATIVE_TOLERANCE = 1e-9
ROWS_SHOWN = 20
WIDTH_SHOWN = 48

Row = tuple[Any, ...]

# the tables are tiny and the queries many: one partition, so that none needs a shuffle, and no generated code to compile
# (but for strings with a collation, whose aggregates are wrong in Spark without it: it does not copy what it keeps);
# and no table is a constant of the query: of those, Spark decides while it optimises what fails
_PLAIN = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.execution.arrow.localRelationThreshold": "0",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.shuffle.partitions": "1",
}


@dataclass(frozen=True)
class Answer:
    """What Spark says: its rows, and the columns that lead their order, None if they have none."""

    frame: DataFrame
    rows: pa.Table
    ordered_by: tuple[int, ...] | None


@dataclass
class Oracle:
    """Plain Spark over the tables of a session, as they are at its last epoch.

    `definitions` are the queries of those views that other queries read, in an order in which each can be defined. An answer
    is a function of the tables: as long as those that a query mentions have the same rows, Spark is not asked again.
    """

    session: Any
    definitions: Mapping[str, str] = field(default_factory=dict)
    _epoch: int = -1
    _tables: dict[str, pa.Table] = field(default_factory=dict)
    _changed: dict[str, int] = field(default_factory=dict)
    _answers: dict[str, tuple[int, Answer]] = field(default_factory=dict)

    def answer(self, query: str) -> Answer:
        """What Spark says now."""
        self.refresh()
        changed = max((self._changed[name] for name in self._mentioned(query)), default=0)
        known = self._answers.get(query)
        if known is None or known[0] < changed:
            frame = self._spark.sql(query)
            ordered = _ordered_by(frame) if "ORDER BY" in query.upper() else None
            known = self._answers[query] = changed, Answer(frame, collected(frame), ordered)
        return known[1]

    @cached_property
    def _spark(self) -> SparkSession:
        spark = self.session.spark.newSession()
        schemas = [table.schema for table in self.session.tables().values()]
        collated = any(" collate " in (kind if isinstance(kind, str) else kind.simpleString()) for kind in schemas)
        for setting, value in _PLAIN.items():
            if not (collated and "codegen" in setting):
                spark.conf.set(setting, value)
        return spark

    def refresh(self) -> None:
        """Give Spark the tables that have other rows than before, and the views that may read them."""
        if self._epoch == self.session.epoch:
            return
        self._epoch = self.session.epoch
        for name, table in self.session.tables().items():
            rows = table.arrow()
            if name not in self._tables or not rows.equals(self._tables[name]):
                self._tables[name] = rows
                self._changed[name] = self._epoch
                self._frame(rows, table.schema).createOrReplaceTempView(_quoted(name))
        for name, query in self.definitions.items():
            self._spark.sql(query).createOrReplaceTempView(_quoted(name))

    def _frame(self, rows: pa.Table, schema: StructType) -> DataFrame:
        spark = self._spark
        return spark.createDataFrame(rows if rows.num_rows else spark.sparkContext.emptyRDD(), schema)

    def _mentioned(self, query: str) -> set[str]:
        """The tables that a query may read: too many do no harm."""
        text = query.lower()
        views = {name: read for name, read in self.definitions.items() if name.lower() in text and read != query}
        tables = {name for name in self._tables if name.lower().replace("`", "``") in text}
        return tables.union(*(self._mentioned(read) for read in views.values()))

    def check(self, view: Any, query: str) -> None:
        """Raise an AssertionError that tells all if the view does not hold what Spark answers."""
        answer = self.answer(query)
        found = view.arrow()
        report = difference(found, answer)
        if report:
            raise AssertionError(_report(self.session, view, query, answer, report))


def check(session: Any, view: Any, query: str) -> None:
    """One comparison; several at the same epoch are cheaper with one `Oracle`."""
    Oracle(session).check(view, query)


def check_changes(before: pa.Table, view: Any, since: int) -> None:
    """The content at an epoch, and all changes since, must give the content now."""
    count: dict[Row, int] = defaultdict(int)
    for row in rows_of(before):
        count[_exact(row)] += 1
    for _, delta in view.changes(since=since):
        weights = delta.column("_weight").to_pylist()
        for row, weight in zip(rows_of(delta.drop_columns(["_weight"])), weights, strict=True):
            count[_exact(row)] += weight
    for row in rows_of(view.arrow()):
        count[_exact(row)] -= 1
    wrong = {row: weight for row, weight in count.items() if weight}
    assert not wrong, (
        f"replayed changes have these rows too often, or (negative) too seldom: {list(wrong.items())[:ROWS_SHOWN]}"
    )


def difference(found: pa.Table, answer: Answer) -> str:
    """What differs, for a person to read; empty when nothing does."""
    expected = answer.rows
    if found.column_names != expected.column_names:
        return f"columns differ\n  view  {found.column_names}\n  Spark {expected.column_names}"
    types = [(name, a, b) for name, a, b in zip(found.column_names, found.schema.types, expected.schema.types, strict=True)]
    wrong = [f"  {name}: view {a}, Spark {b}" for name, a, b in types if _bare(a) != _bare(b)]
    if wrong:
        return "types differ\n" + "\n".join(wrong)
    ours, theirs = rows_of(found), rows_of(expected)
    surplus, missing = bag_difference(ours, theirs)
    if surplus or missing:
        return _aligned(found.column_names, surplus, missing)
    if answer.ordered_by is not None:
        return _order_difference(found.column_names, ours, theirs, answer.ordered_by)
    return ""


def rows_of(table: pa.Table) -> list[Row]:
    """Rows as tuples by position, since names of columns need not be unique; maps become sorted tuples of entries."""
    columns = [[_plain(value, column.type) for value in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def bag_difference(ours: Sequence[Row], theirs: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The rows that only the one has, and those that only the other has."""
    count: dict[Row, int] = defaultdict(int)
    for row in ours:
        count[_exact(row)] += 1
    missing = []
    for row in theirs:
        key = _exact(row)
        if count[key] > 0:
            count[key] -= 1
        else:
            missing.append(row)
    surplus = []
    for row in reversed(ours):
        key = _exact(row)
        if count[key] > 0:
            count[key] -= 1
            surplus.append(row)
    return _pair_off(surplus[::-1], missing)


def same(a: Any, b: Any) -> bool:
    """Equality of two values as the head of this module states it."""
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return math.isclose(a, b, rel_tol=RELATIVE_TOLERANCE, abs_tol=0.0) and (
            a != 0 or math.copysign(1, a) == math.copysign(1, b)
        )
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and bool(a == b)


def _pair_off(surplus: list[Row], missing: list[Row]) -> tuple[list[Row], list[Row]]:
    """Strike out the pairs that are equal within the tolerance."""
    unmatched = []
    for row in surplus:
        partner = next((index for index, other in enumerate(missing) if same(row, other)), None)
        if partner is None:
            unmatched.append(row)
        else:
            del missing[partner]
    return unmatched, missing


def _exact(value: Any) -> Any:
    """A hashable stand-in: equal for values that are exactly the same."""
    if isinstance(value, tuple):
        return tuple(_exact(part) for part in value)
    # the text of a float tells −0.0 from 0.0, and one NaN is as good as another
    return type(value), value.hex() if isinstance(value, float) else value


def _plain(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_map(kind):
        entries = [(_plain(key, kind.key_type), _plain(item, kind.item_type)) for key, item in value]
        return tuple(sorted(entries, key=repr))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return tuple(_plain(part, kind.value_type) for part in value)
    if pa.types.is_struct(kind):
        return tuple(_plain(value[field.name], field.type) for field in kind)
    return value


def _bare(kind: pa.DataType) -> str:
    """The type without what a row cannot show: nullability, metadata, names of the parts of lists and maps."""
    if pa.types.is_map(kind):
        return f"map<{_bare(kind.key_type)}, {_bare(kind.item_type)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list<{_bare(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{part.name}: {_bare(part.type)}' for part in kind)}>"
    return str(kind).removeprefix("large_")


def _order_difference(names: list[str], ours: list[Row], theirs: list[Row], keys: tuple[int, ...]) -> str:
    for place, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if not same(tuple(a[key] for key in keys), tuple(b[key] for key in keys)):
            by = ", ".join(names[key] for key in keys)
            return f"same rows, but not in the order of {by}: first at row {place}\n" + _aligned(names, [a], [b])
    return ""


def _aligned(names: list[str], surplus: list[Row], missing: list[Row]) -> str:
    """A text table: `+` rows only the view has, `-` rows only Spark has; like rows beside each other."""
    marked = sorted([(repr(row), "+", row) for row in surplus] + [(repr(row), "-", row) for row in missing])
    head = f"{len(surplus)} rows only in the view (+), {len(missing)} only in Spark's answer (-)"
    return f"{head}\n" + _text_table(["", *names], [(sign, *map(_cell, row)) for _, sign, row in marked])


def _text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [head, *rows[:ROWS_SHOWN]]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    more = len(rows) - ROWS_SHOWN
    return "\n".join([*lines, *([f"… and {more} more"] if more > 0 else [])])


def _cell(value: Any) -> str:
    text = "NULL" if value is None else repr(value) if isinstance(value, str | bytes | tuple) else str(value)
    return text if len(text) <= WIDTH_SHOWN else text[: WIDTH_SHOWN - 1] + "…"


def _report(session: Any, view: Any, query: str, answer: Answer, differs: str) -> str:
    parts = {
        f"view differs from Spark at epoch {session.epoch}": differs,
        "query": query,
        "Spark's optimised plan": answer.frame._jdf.queryExecution().optimizedPlan().toString(),
        "the view's plan": view.explain(),
        "last delta of the view": _last_delta(session, view),
    }
    return "\n" + "\n\n".join(f"── {title} ──\n{text.strip()}" for title, text in parts.items())


def _last_delta(session: Any, view: Any) -> str:
    deltas = list(view.changes(since=session.epoch - 1))
    if not deltas:
        return "none: nothing changed at this epoch"
    _, delta = deltas[-1]
    return _text_table(delta.column_names, [tuple(map(_cell, row)) for row in rows_of(delta)])


def _ordered_by(frame: DataFrame) -> tuple[int, ...] | None:
    """The columns of the answer that lead its top-level ORDER BY; None if it has none.

    Keys that are no column of the answer end the list: what follows them is in no order that the answer shows.
    """
    plan = frame._jdf.queryExecution().analyzed()
    output = [plan.output().apply(index).exprId().toString() for index in range(plan.output().length())]
    while plan.nodeName() in ("Project", "GlobalLimit", "LocalLimit", "Offset", "WithCTE"):
        plan = plan.plan() if plan.nodeName() == "WithCTE" else plan.child()
    if plan.nodeName() != "Sort" or not getattr(plan, "global")():
        return None
    keys: list[int] = []
    for index in range(plan.order().length()):
        key = plan.order().apply(index).child()
        if key.nodeName() != "AttributeReference" or key.exprId().toString() not in output:
            break
        keys.append(output.index(key.exprId().toString()))
    return tuple(keys)


def collected(frame: DataFrame) -> pa.Table:
    """Spark's rows. Arrow refuses NULL structs of fields that never are: within columns, all may be NULL."""
    nested = [isinstance(field.dataType, ArrayType | MapType | StructType) for field in frame.schema]
    named = frame.toDF(*(f"c{i}" for i in range(len(nested))))
    loose = named.schema.toNullable()
    columns = [named[f.name].cast(f.dataType) if deep else named[f.name] for f, deep in zip(loose, nested, strict=True)]
    # and has no column without a type that is never NULL, which explode(array()) gives
    columns = [lit(None).alias(f.name) if isinstance(f.dataType, NullType) else c for f, c in zip(loose, columns, strict=True)]
    return named.select(*columns).toArrow().rename_columns(frame.columns)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
