"""All strategies against a plain fixpoint, over random graphs with cycles and random scripts of insertions and deletions."""

from __future__ import annotations

import gc
import random
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reachability import closure
from reachability import settings as of_reachability
from same_generation import same_generation
from same_generation import settings as of_same_generation

from headwater.annotations.absorption import Functions
from headwater.errors import RecursionLimit
from headwater.operators.recursive.absorption import Absorption
from headwater.operators.recursive.dred import DRed, Recompute
from headwater.operators.recursive.minship import MinShip
from headwater.operators.recursive.places import Counters
from headwater.operators.recursive.relative import Relative

STRATEGIES: dict[str, Any] = {
    "lazy": lambda program, shards: Absorption(program(shards)),
    "eager": lambda program, shards: Absorption(program(shards, batch=1)),
    "batched": lambda program, shards: Absorption(program(shards, batch=3)),
    "at intervals": lambda program, shards: Absorption(program(shards, interval=1e-5)),
    "relative": lambda program, shards: Relative(program(shards)),
    "dred": lambda program, shards: DRed(program(shards)),
    "recompute": lambda program, shards: Recompute(program(shards)),
}
PROGRAMS: dict[str, Any] = {
    "reachability": (of_reachability, closure),
    "same generation": (of_same_generation, same_generation),
}
EVERY = list(product("abcde", "abcde"))
toggles = st.lists(st.lists(st.sampled_from(EVERY), min_size=1, max_size=6, unique=True), min_size=1, max_size=12)


def followed(strategy: Any, script: list[list[tuple[str, str]]], oracle: Any) -> None:
    """Each transaction turns links: those that are there go, the others come."""
    links: set[Any] = set()
    answer: set[Any] = set()
    for turned in script:
        gone, come = [link for link in turned if link in links], [link for link in turned if link not in links]
        links ^= set(turned)
        appeared, vanished = strategy.apply([gone], [come])
        assert len(set(appeared)) == len(appeared)
        assert not answer & set(appeared)
        assert set(vanished) <= answer
        answer = (answer | set(appeared)) - set(vanished)
        assert answer == oracle(links)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", STRATEGIES)
@settings(max_examples=60)
@given(script=toggles, shards=st.sampled_from([None, 1, 2, 5]))
def test_equal_to_a_plain_fixpoint(name: str, program: str, script: list[list[tuple[str, str]]], shards: int | None) -> None:
    made, oracle = PROGRAMS[program]
    followed(STRATEGIES[name](made, shards), script, oracle)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_deletion_finds_what_two_joins_stored(name: str) -> None:
    followed(STRATEGIES[name](of_same_generation, 1), [[("a", "a")], [("b", "a"), ("a", "a")]], same_generation)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_dense_graph_that_is_built_and_taken_down(name: str) -> None:
    chance = random.Random(7)
    nodes = "abcdefgh"
    links = [(a, b) for a in nodes for b in nodes if chance.random() < 0.35]
    script = [[link] for link in links] + [[link] for link in chance.sample(links, len(links))]
    followed(STRATEGIES[name](of_reachability, 4), script, closure)


def test_functions_of_eager_absorption_are_exact() -> None:
    """The minimal sets of each row suffice for it, and less does not."""
    chance = random.Random(3)
    links = sorted({(chance.choice("abcd"), chance.choice("abcd")) for _ in range(9)})
    strategy = Absorption(of_reachability(batch=1))
    strategy.apply([[]], [links])
    strategy.apply([links[:1]], [[]])
    for row, function in strategy.relations[0].rows.kept.items():
        for chosen in strategy.functions.minimal_sets(function):
            rows = [strategy.owners[variable][1] for variable in chosen]
            assert row in closure(rows)
            assert all(row not in closure([each for each in rows if each != left]) for left in rows)


def test_a_row_that_comes_again_gets_another_variable() -> None:
    strategy = Absorption(of_reachability())
    strategy.apply([[]], [[("a", "b"), ("b", "c")]])
    first = strategy.variables[0, ("a", "b")]
    # Both in one transaction: the old variable is not reachable before the new one is made.
    strategy.apply([[("a", "b")]], [[]])
    assert first not in strategy.owners
    assert all(first not in strategy.functions.support(f) for f in strategy.relations[0].rows.kept.values())
    strategy.apply([[]], [[("a", "b")]])
    assert {row for row, _ in strategy.relations[0].rows.kept.items()} == closure([("a", "b"), ("b", "c")])


def test_figures_tell_what_is_kept_and_exchanged() -> None:
    strategy = Absorption(of_reachability(3))
    strategy.apply([[]], [[("a", "b"), ("b", "c"), ("c", "a")]])
    figures = strategy.figures()
    assert figures["state"]["fixpoint"]["rows"] == 9
    assert figures["exchanged_rows"] > 0
    assert figures["provenance_bytes_a_row"] > 0
    assert figures["rounds"] > 1


def test_a_recursion_beyond_its_limits_is_stopped() -> None:
    from dataclasses import replace

    few = replace(of_reachability(), rounds=3)
    chain = [(f"n{i}", f"n{i + 1}") for i in range(10)]
    for made in (Absorption, DRed, Relative):
        with pytest.raises(RecursionLimit, match=r"'reachable' has not ended after 3 rounds.*about to add"):
            made(few).apply([[]], [chain])


def test_an_eager_ship_waits_for_its_interval_or_for_the_end() -> None:
    functions, times = Functions(), iter([0.0, 1.0, 2.0, 5.0, 5.0, 6.0, 99.0])
    ship = MinShip(Counters(), functions, None, interval=5.0, clock=lambda: next(times))
    x, y, z = (functions.variable(functions.new()) for _ in range(3))

    def sent(function: Any) -> list[Any]:
        return [shipped for _, shipped, _ in ship.ship([((("a",), function, 0), 1)])]

    assert sent(x) == [x]
    assert sent(y) == []
    assert sent(x & y) == []
    assert sent(z) == []
    # Five seconds have passed.
    assert sent(x & z | y & z) == [y | z]
    assert sent(functions.true) == []
    assert [shipped for _, shipped, _ in ship.flush()] == [functions.true]


def test_functions_are_given_back_where_a_strategy_dies_in_a_cycle() -> None:
    """CUDD complains of functions that outlive their diagrams, which fails the test; and Python clears cycles in any order."""
    for _ in range(5):
        cycle: dict[str, Any] = {}
        cycle["itself"] = cycle
        cycle["strategy"] = strategy = Absorption(of_reachability(batch=1))
        strategy.apply([[]], [[("A", "B"), ("B", "C"), ("C", "A"), ("C", "B")]])
        del cycle, strategy
    gc.collect()
