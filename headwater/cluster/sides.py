"""Small sides of joins: the driver arranges them before a job that builds a view, and executors find them there.

    all of S ⋈ R  =  S ⋈ ΔR          where S is there, and R is empty before and all of its rows are new

While a view is built, all that its tables have is a change, and tasks that meet new rows of each other must wait until these
are written. A side of few rows need not be a change: as long as the other sides are empty, no join has given a row.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from headwater.cluster.cluster import Whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from headwater.cluster.cluster import Change
    from headwater.compiler.dataflow import Step


def small_sides(run: Sequence[Step], changes: Mapping[Step, Sequence[Change]], most: int) -> set[Step]:
    """Arrangements of at most so many rows that nobody reads but joins with sides that are larger."""
    rows = _rows(run, changes)
    joins = [step for step in run if step.operator.sides]
    others = {child for step in run if step not in joins for child in step.inputs}
    small = {child for join in joins for child in join.inputs if rows.get(child, inf) <= most and child not in others}
    while unfit := {child for join in joins for child in _unfit(join, small, rows)}:
        small -= unfit
    return small


def _rows(run: Sequence[Step], changes: Mapping[Step, Sequence[Change]]) -> dict[Step, float]:
    """How many rows come from a step at most, as far as that is plain; none come from constants, which are there before."""
    found: dict[Step, float] = {step: sum(map(_size, several)) for step, several in changes.items()}
    for step in run:
        coming = [found[child] for child in step.inputs if child in found]
        if coming:
            found[step] = sum(coming) if step.operator.keeps_size else inf
    return found


def _size(change: Change) -> float:
    return len(change.kept) if isinstance(change, Whole) else inf


def _unfit(join: Step, small: set[Step], rows: Mapping[Step, float]) -> Iterable[Step]:
    """Sides that must be changes after all: of a relation that comes as one elsewhere, or of a join to which no other comes."""
    relations = join.operator.sides
    large = {relation for relation, child in zip(relations, join.inputs, strict=True) if child in rows and child not in small}
    for relation, child in zip(relations, join.inputs, strict=True):
        if child in small and (relation in large or not large):
            yield child
