"""What is known of a sketch besides its fragments: the query it was captured for, and which accesses it covers by what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwater.sketches.tuning import Tuning

if TYPE_CHECKING:
    from headwater.annotations.fragments import Partition
    from headwater.frontend.catalyst import Query
    from headwater.sketches.facts import Guard


@dataclass(frozen=True)
class Covered:
    """An access: the number of its scan in the plan, from the top, the column that is the attribute, and its partition."""

    scan: int
    column: int
    partition: Partition


@dataclass(frozen=True)
class Estimate:
    """What a sample told of a sketch by a column before it was made.

    `share` is the part of the table that it leaves, `row_groups` that of the row groups of its files, if that is known.
    """

    table: str
    column: str
    fragments: int
    share: float
    row_groups: float | None


@dataclass(frozen=True)
class Captured:
    """A sketch. Its fragments are the rows (number of the access, fragment) of a live view."""

    query: Query
    accesses: tuple[Covered, ...]
    barriers: frozenset[int]
    guards: tuple[Guard, ...]
    lazy: bool = field(default=False, metadata={"later": True})
    """Whether it is brought up to date when it is used, and not by every commit."""
    witnesses: bool = field(default=False, metadata={"later": True})
    """Whether of groups with nothing but least and greatest values only the rows that have these are needed."""
    tuning: Tuning = field(default=Tuning(), metadata={"later": True})
    """How it is maintained."""
    estimates: tuple[Estimate, ...] = field(default=(), metadata={"later": True})
    """What its column, or the number of its fragments, was chosen by, the best first; none if nothing was to be chosen."""
