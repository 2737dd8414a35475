"""Which of two ways is taken the next time: the one that was quicker lately."""

from __future__ import annotations

from headwater.skipping.uses import Usage


def ways(usage: Usage, skipping: float, plain: float, times: int) -> list[bool]:
    taken = []
    for _ in range(times):
        taken.append(usage.prefers_skipping())
        usage.took(skipping if taken[-1] else plain, skipping=taken[-1])
    return taken


def test_both_ways_are_tried_and_the_quicker_one_is_kept() -> None:
    assert ways(Usage(), skipping=1.0, plain=2.0, times=16) == [True] * 9 + [False] + [True] * 6
    assert ways(Usage(), skipping=2.0, plain=1.0, times=16) == [True] * 9 + [False] * 7


def test_what_has_become_slower_is_left() -> None:
    usage = Usage()
    ways(usage, skipping=1.0, plain=2.0, times=10)
    assert ways(usage, skipping=3.0, plain=2.0, times=10)[-1] is False


def test_upkeep_is_set_against_what_is_saved() -> None:
    usage = Usage()
    usage.notice(10, 0.5)
    usage.notice(14, 0.5)
    assert usage.upkeep == 2.0
    # Nobody knows yet how long the query takes without.
    assert usage.is_worth_its_upkeep
    usage.times, usage.seconds = 3, 3.0
    usage.took(1.5, skipping=False)
    assert usage.seconds_saved == 1.5
    assert not usage.is_worth_its_upkeep
    usage.times, usage.seconds = 6, 6.0
    assert usage.is_worth_its_upkeep


def test_the_other_way_is_tried_again_but_costs_little() -> None:
    for skipping, plain in ((1.0, 2.0), (1.0, 15.0), (2.0, 1.0), (1.2, 1.0)):
        taken = ways(Usage(), skipping, plain, times=1000)
        assert {True, False} <= set(taken[20:])
        spent = sum(skipping if way else plain for way in taken)
        assert spent <= 1.05 * 1000 * min(skipping, plain)
