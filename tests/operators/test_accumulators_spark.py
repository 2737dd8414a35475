"""Every accumulator against Spark itself, on values at the edges and in random groups."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from accumulating import results, state_of

from headwater.errors import EvaluationFailed
from headwater.operators.accumulators import accumulator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN, INF = math.nan, math.inf
NUMBERS = ["sum", "avg"]
STATISTICS = ["var_pop", "var_samp", "stddev_pop", "stddev_samp", "skewness", "kurtosis"]
PAIRS = [
    *("corr", "covar_pop", "covar_samp", "regr_sxy", "regr_r2", "regr_slope", "regr_intercept", "regr_count"),
    *("regr_sxx", "regr_syy", "regr_avgx", "regr_avgy"),
]
CLASSES = {
    "sum": "Sum",
    "avg": "Average",
    "count": "Count",
    "bit_xor": "BitXorAgg",
    "try_sum": "Sum",
    "try_avg": "Average",
    "var_pop": "VariancePop",
    "var_samp": "VarianceSamp",
    "stddev_pop": "StddevPop",
    "stddev_samp": "StddevSamp",
    "skewness": "Skewness",
    "kurtosis": "Kurtosis",
    "corr": "Corr",
    "covar_pop": "CovPopulation",
    "covar_samp": "CovSample",
    "regr_sxy": "RegrSXY",
    "regr_r2": "RegrR2",
    "regr_slope": "RegrSlope",
    "regr_intercept": "RegrIntercept",
    "regr_count": "Count",
    "regr_sxx": "RegrReplacement",
    "regr_syy": "RegrReplacement",
    "regr_avgx": "Average",
    "regr_avgy": "Average",
}
# Which of the two inputs is left of what Spark rewrites to a function of one, NULL where either is.
ONE_SIDED = {"regr_sxx": 1, "regr_syy": 0, "regr_avgx": 1, "regr_avgy": 0}


def by_spark(
    spark: SparkSession, functions: list[str], rows: list[tuple], types: list[str]
) -> tuple[pa.Schema, dict[int, tuple]]:
    columns = ", ".join(f"c{i}" for i in range(len(types)))
    schema = ", ".join(["g INT", *(f"c{i} {type_}" for i, type_ in enumerate(types))])
    spark.createDataFrame(rows, schema).coalesce(1).createOrReplaceTempView("accumulated")
    answer = spark.sql(
        f"SELECT g, {', '.join(f'{f}({columns}) AS {f}' for f in functions)} FROM accumulated GROUP BY g"
    ).toArrow()
    return answer.schema, {row["g"]: tuple(row[f] for f in functions) for row in answer.to_pylist()}


def by_accumulator(function: str, groups: list[int], inputs: list[pa.Array]) -> pa.Array:
    if function in ONE_SIDED:
        whole = pa.array([all(row) for row in zip(*(array.is_valid().to_pylist() for array in inputs), strict=True)])
        inputs = [pa.compute.if_else(whole, inputs[ONE_SIDED[function]], None)]
    mode = {"evalMode": json.dumps("TRY")} if function.startswith("try") else {}
    acc = accumulator(CLASSES[function], [array.type for array in inputs], mode)
    assert acc is not None
    return results(acc, max(groups) + 1, state_of(acc, groups, inputs, [1] * len(groups)))


def close(ours: Any, theirs: Any, slack: float) -> bool:
    if not isinstance(ours, float) or not isinstance(theirs, float):
        return ours == theirs
    return (math.isnan(ours) and math.isnan(theirs)) or math.isclose(ours, theirs, rel_tol=1e-12, abs_tol=slack)


def check(spark: SparkSession, functions: list[str], groups: list[list[tuple]], types: list[str], slack: float = 0.0) -> None:
    """The functions of each group of rows are what Spark says; `slack` is what Spark's own rounding may cost."""
    rows = [(group, *row) for group, members in enumerate(groups) for row in members]
    schema, expected = by_spark(spark, functions, rows, types)
    inputs = spark.createDataFrame(rows, ", ".join(["g INT", *(f"c{i} {t}" for i, t in enumerate(types))])).toArrow()
    arrays = [inputs.column(1 + i).combine_chunks() for i in range(len(types))]
    for at, function in enumerate(functions):
        ours = by_accumulator(function, inputs.column(0).to_pylist(), arrays)
        assert ours.type == schema.field(function).type, function
        for group, value in enumerate(ours.to_pylist()):
            theirs = expected[group][at]
            assert close(value, theirs, slack), f"{function} of {groups[group]}: {value}, and by Spark {theirs}"


DOUBLES: list[list[float | None]] = [
    *([None], [None, None], [0.0], [-0.0, -0.0], [1.0], [1.0, 1.0], [1.0, 2.0], [1.0, None, 2.0], [0.1, 0.1, 0.1]),
    *([NAN], [INF], [-INF], [NAN, 1.0], [INF, 1.0], [1.0, INF], [INF, -INF], [INF, INF], [NAN, INF, None]),
    *([1e16, 1e16 + 2], [1e100], [1e100, 2e100, 5e100], [1e70, 2e70, 5e70], [1e120, 2e120, 5e120], [1e155, 2e155, 5e155]),
    *([1e200, 2e200], [1e-200, 2e-200], [5e-324, 5e-324], [1.7e308], [1.0, 2.0, 3.0, 4.0, 100.0], [-3.5, 2.25, 1e-3]),
]


def test_doubles(spark: SparkSession) -> None:
    check(spark, ["sum", "avg", "count", *STATISTICS], [[(value,) for value in values] for values in DOUBLES], ["DOUBLE"])


def test_floats(spark: SparkSession) -> None:
    values = [[0.1, 0.2], [None], [NAN, 1.0], [INF, -INF], [3.4e38, 3.4e38], [1e-45, 1e-45]]
    rows = [[(None if value is None else float(np.float32(value)),) for value in group] for group in values]
    check(spark, NUMBERS, rows, ["FLOAT"])


def test_random_doubles(spark: SparkSession) -> None:
    random = np.random.default_rng(5)
    groups = [[(value,) for value in (random.normal(size=20) * 10.0 ** random.integers(-3, 6)).tolist()] for _ in range(40)]
    # Terms that cancel leave Spark with a rounding error.
    check(spark, ["sum", "avg", *STATISTICS], groups, ["DOUBLE"], slack=1e-9)


@pytest.mark.parametrize(("type_", "bits"), [("TINYINT", 8), ("SMALLINT", 16), ("INT", 32), ("BIGINT", 64)])
def test_integers(spark: SparkSession, type_: str, bits: int) -> None:
    top = 2 ** (bits - 1) - 1
    values = [[None], [0], [top], [-top - 1], [top, -top - 1], [1, 2, None, 4], [1, 1], [-7, 1, None], [top - 1, 1]]
    check(spark, ["sum", "avg", "count", "bit_xor"], [[(value,) for value in group] for group in values], [type_])


def test_averages_of_long_integers(spark: SparkSession) -> None:
    top = 2**63 - 1
    values = [[top, top], [2**53 + 1, -(2**53)], [-top - 1] * 3, [2**53 + 1, 2**53 + 1], [top, -top - 1]]
    check(spark, ["avg", "try_avg", "try_sum"], [[(value,) for value in group] for group in values], ["BIGINT"])


@pytest.mark.parametrize(
    ("precision", "scale"), [(12, 2), (18, 0), (18, 18), (19, 4), (28, 10), (34, 2), (38, 0), (38, 35), (38, 38)]
)
def test_decimals(spark: SparkSession, precision: int, scale: int) -> None:
    top = 10**precision - 1
    whole = [
        [None],
        [0],
        [1, 2, 2],
        [-1, -2, -2],
        [1, 0],
        [-1, 0],
        [1] * 6 + [0] * 7,
        [top // 10**4],
        [top, -top, 1],
        [7, None],
    ]
    groups = [[(None if value is None else Decimal(f"{value}e-{scale}"),) for value in values] for values in whole]
    check(spark, ["sum", "avg", "try_sum", "try_avg"], groups, [f"DECIMAL({precision}, {scale})"])


def test_intervals(spark: SparkSession) -> None:
    micros = [[None], [1, 2], [-1, -2], [1, 2, 0], [10**15, 1], [-(10**15), 1, None, 1], [86_400_000_000, 1]]
    groups = [[(None if value is None else dt.timedelta(microseconds=value),) for value in values] for values in micros]
    check(spark, ["sum", "avg", "try_sum"], groups, ["INTERVAL DAY TO SECOND"])


def test_pairs(spark: SparkSession) -> None:
    groups: list[list[tuple]] = [
        *([(None, 1.0)], [(1.0, None)], [(1.0, 1.0)], [(1.0, 1.0), (1.0, 1.0)], [(1.0, 2.0), (2.0, 3.0)]),
        *([(1.0, 2.0), (1.0, 3.0)], [(1.0, 2.0), (2.0, 2.0)], [(1.0, None), (2.0, 3.0), (3.0, 4.0)]),
        *([(NAN, 1.0)], [(1.0, NAN)], [(NAN, 1.0), (2.0, 2.0)], [(2.0, NAN), (3.0, 2.0)], [(NAN, NAN), (1.0, 1.0)]),
        *(
            [(1.0, 2.0), (2.0, 4.0), (3.0, 5.0)],
            [(0.5, 1.0), (0.5, 1.0), (0.5, 2.0)],
            [(1e100, 1.0), (3e100, 2.0), (4e100, 5.0)],
        ),
    ]
    check(spark, PAIRS, groups, ["DOUBLE", "DOUBLE"], slack=1e-15)
    infinite = [[(INF, 1.0)], [(INF, 1.0), (1.0, 2.0)], [(INF, 1.0), (1.0, 1.0)], [(1.0, INF), (2.0, 1.0)]]
    check(spark, PAIRS, infinite, ["DOUBLE", "DOUBLE"])


def test_random_pairs(spark: SparkSession) -> None:
    random = np.random.default_rng(6)
    groups = [[tuple(row) for row in (random.normal(size=(15, 2)) * [100, 3] + [7, 0]).tolist()] for _ in range(30)]
    check(spark, PAIRS, groups, ["DOUBLE", "DOUBLE"], slack=1e-11)


LONG, WIDE, INTERVAL = "BIGINT", "DECIMAL(38, 0)", "INTERVAL DAY TO SECOND"
MOST = Decimal(10**38 - 1)


@pytest.mark.parametrize(
    ("function", "values", "type_"),
    [
        ("sum", [2**63 - 1, 1], LONG),
        ("sum", [-(2**63), -1], LONG),
        ("sum", [MOST, Decimal(1)], WIDE),
        ("avg", [MOST, MOST], WIDE),
        ("avg", [MOST], WIDE),
        ("avg", [Decimal(1 - 10**38), Decimal(0)], WIDE),
        ("skewness", [1e-120, 2e-120, 5e-120], "DOUBLE"),
        ("kurtosis", [1e-120, 2e-120, 5e-120], "DOUBLE"),
    ],
)
def test_errors(spark: SparkSession, function: str, values: list, type_: str) -> None:
    """The error has the words of Spark's own, which goes on to show the place in the query."""
    rows = [(0, value) for value in values]
    with pytest.raises(Exception, match=r"SQLSTATE") as theirs:
        by_spark(spark, [function], rows, [type_])
    said = str(theirs.value).split("SQLSTATE")[0]
    array = spark.createDataFrame(rows, f"g INT, c0 {type_}").toArrow().column(1).combine_chunks()
    with pytest.raises(EvaluationFailed) as ours:
        by_accumulator(function, [0] * len(values), [array])
    assert str(ours.value).split("SQLSTATE")[0] == f"[EVALUATION_FAILED] {said}"


def test_error_of_intervals(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="INTERVAL_ARITHMETIC_OVERFLOW") as theirs:
        spark.sql(
            "SELECT sum(x) FROM VALUES (INTERVAL '106751991 04:00:54.775807' DAY TO SECOND), (INTERVAL 1 SECOND) AS t(x)"
        ).collect()
    array = pa.array([2**63 - 1, 1_000_000], pa.duration("us"))
    for function in ("sum", "avg"):
        with pytest.raises(EvaluationFailed) as ours:
            by_accumulator(function, [0, 0], [array])
        assert str(ours.value).removeprefix("[EVALUATION_FAILED] ") in str(theirs.value)
    assert by_accumulator("try_sum", [0, 0], [array]).to_pylist() == [None]
