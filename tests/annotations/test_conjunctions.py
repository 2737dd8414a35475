"""Sets of conjunctions are the functions that decision diagrams are: the same operations give the same least sets."""

from __future__ import annotations

import random
from typing import Any

import pytest

from headwater.annotations.absorption import Functions
from headwater.annotations.conjunctions import Conjunctions
from headwater.errors import ProvenanceTooLarge

VARIABLES = 7


def sets(functions: Functions | Conjunctions, function: Any) -> set[frozenset[int]]:
    return set(functions.minimal_sets(function))


@pytest.mark.parametrize("seed", range(20))
def test_that_operations_agree_with_diagrams(seed: int) -> None:
    chance = random.Random(seed)
    diagrams, conjunctions = Functions(), Conjunctions()
    numbers = [(diagrams.new(), conjunctions.new()) for _ in range(VARIABLES)]
    known: list[tuple[Any, Any]] = [(diagrams.variable(a), conjunctions.variable(b)) for a, b in numbers]
    known += [(diagrams.true, conjunctions.true), (diagrams.false, conjunctions.false)]
    for _ in range(60):
        (f, mine), (g, theirs) = chance.choice(known), chance.choice(known)
        gone = chance.sample(range(VARIABLES), 2)
        absent = diagrams.absent(gone[:1]) & diagrams.absent(gone[1:])
        missing = conjunctions.absent(gone[:1]) & conjunctions.absent(gone[1:])
        made = [(f & g, mine & theirs), (f | g, mine | theirs)]
        made.append((diagrams.without(f, absent), conjunctions.without(mine, missing)))
        for diagram, conjunction in made:
            assert sets(diagrams, diagram) == sets(conjunctions, conjunction)
            assert diagrams.support(diagram) == conjunctions.support(conjunction)
        assert (f <= g, f == g) == (mine <= theirs, mine == theirs)
        known.append(chance.choice(made))


def test_one_conjunction_makes_it_true() -> None:
    functions = Conjunctions()
    x, y, z = (functions.variable(functions.new()) for _ in range(3))
    assert functions.one_of((x & y) | z) == z
    assert functions.nbytes(x & y) == 3 * functions.nbytes(functions.true)


def test_that_too_many_alternatives_are_refused() -> None:
    functions = Conjunctions()
    halves = []
    for _ in range(2):
        half = functions.false
        for _ in range(65):
            half |= functions.variable(functions.new())
        halves.append(half)
    with pytest.raises(ProvenanceTooLarge, match=r"4,225 sets of base rows"):
        _ = halves[0] & halves[1]


def test_that_variables_are_used_again() -> None:
    functions = Conjunctions()
    first = functions.new()
    functions.free([first])
    assert [functions.new(), functions.new()] == [first, first + 1]
