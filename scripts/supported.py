"""Writes docs/supported.md: what the engine maintains, and how, taken from the engine's own tables.

With `--check` it writes nothing, and fails if the page is not what would be written.
"""

from __future__ import annotations

import sys
from pathlib import Path

from headwater.compiler.aggregates import EXTREMES
from headwater.evaluation.duckdb_sql import functions
from headwater.evaluation.windows import AGGREGATES, OFFSETS, RANKING
from headwater.operators.accumulators import INVERTIBLE

PAGE = Path(__file__).parent.parent / "docs" / "supported.md"

TEXT = """# What is supported, and how

This page is written by `scripts/supported.py` from the tables that the compiler itself uses; a test keeps it true. Functions go
by the names of Catalyst, Spark's optimiser, as the compiler has them: `avg` is `Average`, `x + 1` is `Add`.

Every deterministic Spark query can be a live view. What differs is the cost of keeping it.

## Maintenance classes

| class | which operators | what a change costs |
|---|---|---|
| linear | filter, project, `explode`, `inline`, union, grouping sets, Python UDFs | the changed rows |
| stateful | joins, aggregates below, distinct, set operations, top-k, scalar subqueries | the changed rows and what they meet |
| touched groups | window functions, all other aggregates, Python aggregates | the groups or partitions with a changed row |
| recomputed | plan nodes without a rule, and views created with `refresh="full"` | the whole input, on Spark |

## Strings with a collation

Spark compares them. Joins, groups, `DISTINCT`, set operations and orders go by Spark's collation keys, and cost what they cost
for other strings, beside a call to Spark. Where a group has several strings that are equal, the answer shows the one that is
the least by its bytes; Spark shows the one that it meets first. Recomputed: groups by several such strings, nested values of
them as keys, and window functions of them. Refused: as keys of tables, in sketches, and beside `WITH RECURSIVE`.

`CHAR(n)` and `VARCHAR(n)` columns are filled up, cut and refused as Spark does it, and compared as Spark compares them.

## Settings of the Spark session

A view means what its query meant under the settings of the given session when the view was created, as views of Spark's catalog
do; a setting that is changed later is for later queries. Functions under a setting that is not Spark's usual one, such as
`spark.sql.legacy.timeParserPolicy`, are evaluated by Spark with that setting; with `spark.sql.ansi.enabled` they are evaluated
as usual. Other Spark sessions of the process change nothing.

## Aggregates that are maintained

By exact sums that are added to and subtracted from: {invertible}.

By keeping the present value, and looking a group through only when that value is deleted: {extremes}. Of
`-0.0` and `0.0`, which are equal, either may be the answer: Spark's own is the one that it meets first.

Each of them also with `DISTINCT` and `FILTER`. All others are evaluated again for the groups that changed.

## Window functions evaluated in the driver

Over the partitions that changed: {windows}. The others, and frames by a distance in the order (`RANGE BETWEEN 2 PRECEDING …`),
are evaluated by Spark, over the same partitions.

## Scalar functions evaluated in the driver

Each is compared with Spark on edge values by the tests. Everything else is evaluated by Spark, on the changed rows.

{scalars}
"""


def listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def page() -> str:
    windows = [*RANKING, *OFFSETS, "NTile", *AGGREGATES]
    return TEXT.format(
        invertible=listed(list(INVERTIBLE)),
        extremes=listed(list(EXTREMES)),
        windows=listed(windows),
        scalars=listed(functions()),
    )


def main() -> int:
    if "--check" in sys.argv:
        return 0 if PAGE.read_text("utf-8") == page() else 1
    PAGE.write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
