"""Window functions as DuckDB SQL, where DuckDB and Spark agree; the partitions that changed are then evaluated in the driver.

They agree on ranking and offset functions over any order, and on the aggregates count, sum, min, max and avg over frames of
rows, or of peers. Left to Spark: frames by a distance in the order, and averages of decimals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.algebra.expressions import Call, Column, Expression, Literal
from headwater.evaluation.duckdb_sql import Untranslatable, translate
from headwater.evaluation.functions.rule import sql_type
from headwater.evaluation.settings import only_spark_knows
from headwater.operators.ordering import is_ordered

if TYPE_CHECKING:
    from headwater.algebra.plan import Window

RANKING = {
    "RowNumber": "row_number()",
    "Rank": "rank()",
    "DenseRank": "dense_rank()",
    "PercentRank": "percent_rank()",
    "CumeDist": "cume_dist()",
}
AGGREGATES = {"Count": "count", "Sum": "sum", "Min": "min", "Max": "max", "Average": "avg", "First": "first_value"}
AGGREGATES |= {"Last": "last_value"}
OFFSETS = ("Lag", "Lead")
_BOUNDS = {
    "UnboundedPreceding": "UNBOUNDED PRECEDING",
    "UnboundedFollowing": "UNBOUNDED FOLLOWING",
    "CurrentRow": "CURRENT ROW",
}


def window_sql(node: Window) -> str:
    """A statement over the table `delta` that gives its columns and those of the window functions."""
    below = [f"c{i}" for i in range(len(node.child.types))]
    made = node.types[len(below) :]
    columns = [
        f"CAST({_function(function, kind)} AS {sql_type(kind)}) AS c{len(below) + i}"
        for i, (function, kind) in enumerate(zip(node.functions, made, strict=True))
    ]
    return f"SELECT {', '.join([*below, *columns])} FROM delta"


def _function(expression: Expression, kind: pa.DataType) -> str:
    if not (isinstance(expression, Call) and expression.function == "WindowExpression"):
        raise Untranslatable("a window expression of an unknown shape")
    if (reason := only_spark_knows(expression)) is not None:
        raise Untranslatable(f"a window {reason}")
    function, specification = expression.arguments
    assert isinstance(function, Call)
    assert isinstance(specification, Call)
    *keys, frame = specification.arguments
    partition = [part for part in keys if not _is_order(part)]
    order = [_order(part) for part in keys if _is_order(part)]
    clauses = []
    if partition:
        clauses.append(f"PARTITION BY {', '.join(_column(part) for part in partition)}")
    if order:
        clauses.append(f"ORDER BY {', '.join(order)}")
    call = _ranking(function) or _offset(function)
    if call is None:
        call = _aggregate(function, kind)
        clauses.append(_frame(frame))
    return f"{call} OVER ({' '.join(clauses)})"


def _ranking(function: Call) -> str | None:
    if function.function == "NTile":
        return f"ntile({_integer(function.arguments[0])})"
    return RANKING.get(function.function)


def _offset(function: Call) -> str | None:
    """`lag` and `lead`; Catalyst writes the offset of `lag` with its sign turned."""
    if function.function not in OFFSETS or function.option("ignoreNulls") == "true":
        return None
    value, offset, default = function.arguments
    if isinstance(offset, Call) and offset.function == "UnaryMinus":
        offset = offset.arguments[0]
    distance = abs(int(_integer(offset)))
    otherwise = "NULL" if isinstance(default, Literal) and default.value is None else translate(default).sql
    return f"{function.function.lower()}({_column(value)}, {distance}, {otherwise})"


def _aggregate(function: Call, kind: pa.DataType) -> str:
    if function.function != "AggregateExpression" or function.option("isDistinct") == "true" or len(function.arguments) > 1:
        raise Untranslatable(f"the window function {function.function}")
    inner = function.arguments[0]
    assert isinstance(inner, Call)
    name = AGGREGATES.get(inner.function)
    if name is None or inner.option("ignoreNulls") == "true" or inner.option("evalMode") not in (None, '"ANSI"'):
        raise Untranslatable(f"the window function {inner.function}")
    if inner.function == "Count":
        constant = all(isinstance(part, Literal) for part in inner.arguments)
        return "count(*)" if constant else f"count({_column(_only(inner))})"
    argument = _only(inner)
    if inner.function in ("Sum", "Average") and not isinstance(argument, Column):
        raise Untranslatable(f"{inner.function} of an expression over a window")
    if inner.function == "Average" and pa.types.is_decimal(kind):
        raise Untranslatable("the average of decimals over a window")
    if inner.function in ("Min", "Max") and not is_ordered(kind):
        raise Untranslatable(f"{inner.function} of a nested value over a window")
    if pa.types.is_duration(kind):
        raise Untranslatable("intervals over a window")
    return f"{name}({_column(argument)})"


def _only(function: Call) -> Expression:
    if len(function.arguments) != 1:
        raise Untranslatable(f"{function.function} of several values over a window")
    return function.arguments[0]


def _frame(frame: Expression) -> str:
    if not (isinstance(frame, Call) and frame.function == "SpecifiedWindowFrame"):
        raise Untranslatable("a window frame of an unknown shape")
    rows = "RowFrame" in (frame.option("frameType") or "")
    lower, upper = (_bound(part, rows=rows) for part in frame.arguments)
    return f"{'ROWS' if rows else 'RANGE'} BETWEEN {lower} AND {upper}"


def _bound(part: Expression, *, rows: bool) -> str:
    if isinstance(part, Call) and part.function in _BOUNDS:
        return _BOUNDS[part.function]
    if not rows:
        raise Untranslatable("a frame by distance")
    negative = isinstance(part, Call) and part.function == "UnaryMinus"
    distance = int(_integer(part.arguments[0] if negative else part))  # type: ignore[union-attr]
    distance = -distance if negative else distance
    return f"{abs(distance)} {'PRECEDING' if distance < 0 else 'FOLLOWING'}"


def _integer(part: Expression) -> str:
    if not isinstance(part, Literal) or part.value is None:
        raise Untranslatable("an offset that is not a number")
    return str(int(part.value))


def _column(part: Expression) -> str:
    if isinstance(part, Column):
        return f"c{part.index}"
    return translate(part).sql


def _is_order(part: Expression) -> bool:
    return isinstance(part, Call) and part.function == "SortOrder"


def _order(part: Expression) -> str:
    assert isinstance(part, Call)
    if not isinstance(part.arguments[0], Column) or not is_ordered(part.arguments[0].type):
        raise Untranslatable("an order by something else than a plain column")
    direction = "DESC" if "Descending" in (part.option("direction") or "") else "ASC"
    nulls = "FIRST" if "NullsFirst" in (part.option("nullOrdering") or "") else "LAST"
    return f"{_column(part.arguments[0])} {direction} NULLS {nulls}"
