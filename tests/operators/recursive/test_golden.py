"""The example of three nodes and four links: what every row follows from, what is shipped, and what a deletion takes."""

from __future__ import annotations

from typing import Any

import pytest
from reachability import settings

from headwater.operators.recursive.absorption import Absorption
from headwater.operators.recursive.dred import DRed, Recompute
from headwater.operators.recursive.relative import Relative

LINKS = [("A", "B"), ("B", "C"), ("C", "A"), ("C", "B")]
# By the links p1 … p4, in their order.
PROVENANCE = {
    "AA": {"p1 p2 p3"},
    "AB": {"p1"},
    "AC": {"p1 p2"},
    "BA": {"p2 p3"},
    "BB": {"p2 p4", "p1 p2 p3"},
    "BC": {"p2"},
    "CA": {"p3"},
    "CB": {"p4", "p1 p3"},
    "CC": {"p2 p4", "p1 p2 p3"},
}


def built(strategy: Any) -> Any:
    appeared, vanished = strategy.apply([[]], [LINKS])
    assert {"".join(row) for row in appeared} == set(PROVENANCE)
    assert vanished == []
    return strategy


def provenance(strategy: Absorption) -> dict[str, set[str]]:
    names = {variable: f"p{LINKS.index(row) + 1}" for variable, (_, row) in strategy.owners.items()}  # type: ignore[arg-type]
    kept = strategy.relations[0].rows.kept
    sets = {row: strategy.functions.minimal_sets(function) for row, function in kept.items()}
    return {"".join(row): {" ".join(sorted(names[v] for v in each)) for each in those} for row, those in sets.items()}


def test_provenance_of_all_nine_rows() -> None:
    assert provenance(built(Absorption(settings(batch=1)))) == PROVENANCE


def test_lazy_provenance_is_part_of_it_and_never_false() -> None:
    found = provenance(built(Absorption(settings())))
    assert all(sets and sets <= PROVENANCE[row] for row, sets in found.items())


@pytest.mark.parametrize(
    ("strategy", "shipped"),
    [
        (DRed(settings()), 16),
        (Recompute(settings()), 16),
        (Relative(settings()), 16),
        (Absorption(settings(batch=1)), 20),
        (Absorption(settings()), 16),
    ],
    ids=["dred", "recompute", "relative", "absorption-eager", "absorption-lazy"],
)
def test_rows_shipped_to_build_it(strategy: Any, shipped: int) -> None:
    assert built(strategy).counters.rows == shipped


def test_a_batch_absorbs_what_was_sent_before() -> None:
    assert built(Absorption(settings(batch=100))).counters.rows == 19


def test_deleting_a_link_takes_two_messages_and_removes_nothing() -> None:
    strategy = built(Absorption(settings(batch=1)))
    before = strategy.counters.rows
    assert strategy.apply([[("C", "B")]], [[]]) == ([], [])
    assert strategy.counters.rows - before == 2
    expected = {row: {each for each in sets if "p4" not in each} for row, sets in PROVENANCE.items()}
    assert provenance(strategy) == expected


def test_lazy_ships_alternatives_beside_the_two_messages() -> None:
    strategy = built(Absorption(settings()))
    before = strategy.counters.rows
    assert strategy.apply([[("C", "B")]], [[]]) == ([], [])
    assert strategy.counters.rows - before == 2 + 3


def test_dred_deletes_everything_and_derives_it_again() -> None:
    strategy = built(DRed(settings()))
    rows, effective = strategy.counters.rows, strategy.counters.effective
    assert strategy.apply([[("C", "B")]], [[]]) == ([], [])
    # The link, nine rows that go and six that come back; six more rows are shipped that say nothing new.
    assert strategy.counters.effective - effective == 16
    assert strategy.counters.rows - rows == 22
