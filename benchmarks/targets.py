"""The targets, as data: which figures each applies to, and the limit they must keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.workload import Figure


@dataclass(frozen=True)
class Target:
    """Figures of this family, measure and kinds are at least, or at most, the limit; small deltas are those up to `delta`.

    Large ones are those from `least` on.
    """

    words: str
    family: str
    measure: str
    limit: float
    at_least: bool = True
    kinds: tuple[str, ...] = ()
    delta: int | None = None
    least: int = 0

    def applies(self, family: str, figure: Figure) -> bool:
        return (
            (family, figure.measure) == (self.family, self.measure)
            and (not self.kinds or figure.kind in self.kinds)
            and (self.delta is None or (figure.delta is not None and figure.delta <= self.delta))
            and (figure.delta or 0) >= self.least
        )

    def met(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def worst(self, values: Iterable[float]) -> float:
        return min(values) if self.at_least else max(values)

    @property
    def sign(self) -> str:
        return "≥" if self.at_least else "≤"


SMALL = 1_000
GRAPHS = ("reachability", "components", "shortest paths")

TARGETS = (
    Target("single-table aggregates, deltas up to 1000 rows", "synthetic", "speedup", 200, kinds=("aggregate",), delta=SMALL),
    Target("joins and top-k, deltas up to 1000 rows", "synthetic", "speedup", 100, kinds=("join", "top-k"), delta=SMALL),
    Target("break-even with recompute, per cent of the table", "synthetic", "break-even", 10),
    Target("no delta is slower than recompute", "synthetic", "share of recompute", 1.2, at_least=False),
    Target("groupBy and join-groupBy, each increment", "incremental", "speedup", 10),
    Target("increments while the state grows, last to first", "incremental", "growth", 1.5, at_least=False),
    Target("use of sketches, selective queries", "sketches", "use", 5),
    Target(
        "sketches of one table against capture, deltas up to 1000 rows",
        "sketches",
        "maintenance",
        100,
        kinds=("aggregate", "top-k"),
        delta=SMALL,
    ),
    Target(
        "sketches of joins against capture, deltas up to 1000 rows", "sketches", "maintenance", 30, kinds=("join",), delta=SMALL
    ),
    Target("sketches: break-even with capture, per cent of the table", "sketches", "break-even", 5),
    Target("updates and queries with sketches beside without", "sketches", "mix", 1),
    Target("updates and queries with sketches captured each time, to none", "sketches", "captured each time to none", 1),
    Target("updates and queries with automatic sketches to the better", "sketches", "auto to the better", 1.1, at_least=False),
    Target("TPC-H, median of the queries", "tpch", "median speedup", 50),
    Target("TPC-H, each query", "tpch", "speedup", 5),
    Target("skewed key beside a uniform one", "skew", "skewed to uniform", 1.25, at_least=False, kinds=("aggregate", "join")),
    Target("100 views cost less than 100 × one", "many_views", "all views to one", 100, at_least=False),
    Target("a further view on a common sub-plan, to the first", "many_views", "next view to first", 0.5, at_least=False),
    Target("a commit while the 101st view is created, ms", "many_views", "longest commit", 100, at_least=False),
    Target("refresh after all epochs, last to first hundred", "long_run", "last to first", 1.2, at_least=False),
    Target("99th percentile to median", "long_run", "p99 to median", 10, at_least=False),
    Target("bulk load of an aggregate view, rows/s", "load", "rows per second", 2_000_000, kinds=("aggregate",)),
    Target("bulk load of a join view, rows/s a side", "load", "rows per second", 700_000, kinds=("join",)),
    Target("peak memory to the Arrow size kept", "load", "peak to kept", 3, at_least=False),
    Target("refresh at ten times the rows", "load", "growth", 1.5, at_least=False),
    Target("10-row commit on disk less one sync, to in memory", "durable", "beyond one sync, to in memory", 3, at_least=False),
    Target("opening a join view, to building it", "durable", "to the time to build it", 0.05, at_least=False),
    Target("bytes written to bytes changed", "durable", "write amplification", 10, at_least=False),
    Target("refresh with state of 4 × the memory allowed", "durable", "refresh to in memory", 5, at_least=False),
    Target("rows/s that are followed from Parquet", "streams", "rows per second", 100_000),
    Target("changes/s that are followed from PostgreSQL", "streams", "changes per second", 50_000),
    Target("10-row epoch with a change feed, to without", "streams", "epoch with a feed, to without", 1.2, at_least=False),
    Target("auto within 20 % of the better place, % of points", "cluster", "good times", 90),
    Target("place chosen within 20 % of the better one, % of points", "cluster", "good choices", 90),
    Target("epoch on executors to the bare job", "cluster", "executors to the bare job", 1.5, at_least=False),
    Target(
        "1M rows on executors, beside Spark's recompute",
        "cluster",
        "recompute to executors",
        1,
        kinds=("join",),
        least=1_000_000,
    ),
    Target("building on all cores to one core", "cluster", "all cores to one core", 1.5),
    Target("building on executors to one core of the driver", "cluster", "executors to one core", 1.5),
    Target("TPC-H at scale 10 from attached files, each query", "attached", "speedup", 5),
    Target("deletions, absorption-lazy: rows exchanged by DRed to its own", "provenance", "exchange of dred", 10),
    Target("deletions, absorption-lazy: time of DRed to its own", "provenance", "time of dred", 10),
    Target("800 dense links: absorption-eager to lazy", "provenance", "eager to lazy", 50, kinds=("dense 800",)),
    Target("several aggregate selections at once, to one by one", "provenance", "multi to single", 0.6, at_least=False),
    Target("recursive views, 1 and 100 edges, to DuckDB from scratch", "recursion", "speedup over DuckDB", 100, kinds=GRAPHS),
    Target("recursive views, 1 and 100 edges, to a Spark loop", "recursion", "speedup over a Spark loop", 100, kinds=GRAPHS),
    Target("recursive view, a million edges, to DuckDB", "recursion", "speedup over DuckDB", 50, kinds=("large",)),
    Target("recursive view, a million edges, to a Spark loop", "recursion", "speedup over a Spark loop", 50, kinds=("large",)),
    Target("10-row commit to the smallest Spark job with a shuffle", "smallest", "speedup", 30),
)


def target_of(family: str, figure: Figure) -> Target | None:
    return next((target for target in TARGETS if target.applies(family, figure)), None)
