"""Which of two ways is taken the next time: the one that was quicker lately."""

from __future__ import annotations

from headwater.skipping.uses import Usage


def ways(usage: Usage, skipping: float, plain: float, times: int) -> list[bool]:
    taken = []
    for _ in range(times):
        taken.append(usage.prefers_skipping())
        (usage.skipping if taken[-1] else usage.plain).append(skipping if taken[-1] else plain)
    return taken


def test_both_ways_are_tried_and_the_quicker_one_is_kept() -> None:
    assert ways(Usage(), skipping=1.0, plain=2.0, times=10) == [True, True, False, False] + [True] * 6
    assert ways(Usage(), skipping=2.0, plain=1.0, times=10) == [True, True] + [False] * 8


def test_what_has_become_slower_is_left() -> None:
    usage = Usage()
    ways(usage, skipping=1.0, plain=2.0, times=10)
    assert ways(usage, skipping=3.0, plain=2.0, times=10)[-1] is False


def test_the_other_way_is_tried_again_now_and_then() -> None:
    taken = ways(Usage(), skipping=1.0, plain=2.0, times=200)
    assert 3 <= taken[4:].count(False) <= 5
