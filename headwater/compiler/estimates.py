"""How many rows a relation has, and how many different keys: from the tables as they are when a view is created.

    rows(σ R)     =  rows(R) · the share of a sample of R that passes
    domain(R.k)   =  distinct values of k in the table that R reads; filters do not change it
    fan-out(R|k)  =  rows(R) / domain(k)        how many rows of R a key finds, on average

Nothing is promised. A wrong estimate makes a view slower, never wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.algebra import plan
from headwater.algebra.expressions import Column
from headwater.compiler.linear import is_linear, stage_for
from headwater.delta import Delta

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headwater.compiler.linear import Engines
    from headwater.operators.operator import Key
    from headwater.state.arrangement import Arrangement

_SAMPLE = 4096
_UNKNOWN = 1e5


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known of a table or view: its rows now, where it is kept already, and its key; or only how many rows it has."""

    kept: Arrangement | None
    key: Key | None
    rows: Callable[[], int] | None = None


@dataclass(frozen=True, eq=False)
class Estimate:
    """Of a relation: rows; whether these are known; sets of columns that no two rows share; distinct values of columns."""

    rows: float
    known: bool
    unique: tuple[frozenset[int], ...]
    domain: Callable[[Key], float]


class Estimator:
    """Estimates nodes over tables and views of which there are `facts`, by their names in lower case."""

    def __init__(self, facts: Mapping[str, Facts], engines: Engines) -> None:
        self._facts = facts
        self._engines = engines
        self._distinct: dict[tuple[str, Key], int] = {}

    def estimate(self, node: plan.Node) -> Estimate:  # noqa: PLR0911  (one case a kind)
        match node:
            case plan.Scan(source=source):
                return self._scan(source.lower())
            case plan.Project(child=child, expressions=expressions):
                return _renamed(self.estimate(child), [p.index if isinstance(p, Column) else None for p in expressions])
            case plan.Filter(child=child):
                return self._filter(node, self.estimate(child))
            case plan.Aggregate():
                return self._aggregate(node)
            case plan.Join(left=left, kind="semi" | "anti"):
                below = self.estimate(left)
                return Estimate(below.rows / 2, below.known, below.unique, below.domain)
            case plan.Join(left=left, right=right, kind="inner", condition=None) if isinstance(right, plan.Scalar):
                return _with_constant(self.estimate(left), len(left.types))
            case plan.Scalar():
                return _guessed(1.0, (frozenset(),), known=True)
            case plan.Recursive() | plan.Fixpoint():
                return _guessed(_UNKNOWN, (), known=False)
            case plan.Limit(count=count) if count is not None:
                return _guessed(float(count), (), known=True)
        inputs = [self.estimate(child) for child in node.children]
        return _guessed(max((e.rows for e in inputs), default=1.0), (), known=all(e.known for e in inputs))

    def _scan(self, source: str) -> Estimate:
        facts = self._facts.get(source)
        unique = () if facts is None or facts.key is None else (frozenset(facts.key),)
        kept = None if facts is None else facts.kept
        if facts is not None and facts.rows is not None:
            return _guessed(float(facts.rows()), unique, known=True)
        if kept is None or not len(kept):
            return _guessed(_UNKNOWN, unique, known=False)

        def domain(columns: Key) -> float:
            if any(key <= set(columns) for key in unique):
                return len(kept)
            if (source, columns) not in self._distinct:
                self._distinct[source, columns] = kept.distinct(columns)
            return self._distinct[source, columns]

        return Estimate(rows=len(kept), known=True, unique=unique, domain=domain)

    def _filter(self, node: plan.Filter, below: Estimate) -> Estimate:
        share = self._share(node) if below.known else None
        return Estimate(max(1.0, below.rows * (0.3 if share is None else share)), below.known, below.unique, below.domain)

    def _share(self, node: plan.Filter) -> float | None:
        """Which share of the rows passes the filter, tried out on a sample; None if that would be expensive."""
        chain: list[plan.Node] = [node]
        while is_linear(chain[-1]):
            chain.append(chain[-1].children[0])
        scan = chain.pop()
        facts = self._facts.get(scan.source.lower()) if isinstance(scan, plan.Scan) else None
        if facts is None or facts.kept is None:
            return None
        stages = [stage_for(part[::-1], self._engines) for part in (chain, chain[1:]) if part]
        if any(stage.engine == "spark" for stage in stages):
            return None
        sample = Delta.inserting(facts.kept.sample(_SAMPLE))
        passed = [len(stage.run(sample)) for stage in stages] + [len(sample)]
        return max(passed[0], 0.5) / max(passed[1], 1)

    def _aggregate(self, node: plan.Aggregate) -> Estimate:
        below = self.estimate(node.child)
        columns = tuple(part.index for part in node.keys if isinstance(part, Column))
        rows = below.rows / 10
        if len(columns) == len(node.keys):
            rows = min(below.rows, below.domain(columns)) if columns else 1.0
        places = [node.outputs.index(part) for part in node.keys if part in node.outputs]
        unique = (frozenset(places),) if len(places) == len(node.keys) else ()
        return _guessed(rows, unique, known=below.known)


def _guessed(rows: float, unique: tuple[frozenset[int], ...], *, known: bool) -> Estimate:
    """An estimate where no values can be counted: ten rows for each, but for those known to be unique."""
    return Estimate(rows, known, unique, lambda c: rows if any(key <= set(c) for key in unique) else max(1.0, rows / 10))


def _with_constant(below: Estimate, width: int) -> Estimate:
    """The estimate of rows with a further column that has one value in all of them."""

    def domain(columns: Key) -> float:
        own = tuple(column for column in columns if column < width)
        return below.domain(own) if own else 1.0

    return Estimate(below.rows, below.known, below.unique, domain)


def _renamed(below: Estimate, sources: list[int | None]) -> Estimate:
    """The estimate of a projection; of computed columns nothing is known but that they may all be different."""
    places = {source: place for place, source in reversed(list(enumerate(sources))) if source is not None}
    unique = tuple(frozenset(places[i] for i in key) for key in below.unique if key <= places.keys())

    def domain(columns: Key) -> float:
        below_columns = tuple(sorted(i for i in (sources[column] for column in columns) if i is not None))
        return below.domain(below_columns) if len(below_columns) == len(columns) else below.rows

    return Estimate(below.rows, below.known, unique, domain)
