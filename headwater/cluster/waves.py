"""Waves: which steps of a dataflow run between two exchanges, and what is exchanged.

    wave(step)  =  max over its inputs of  wave(input) + (1 if the input must be exchanged, or be arranged everywhere, first)

A task of wave w runs all steps of that wave for one shard. Rows that need not meet others stay in the shard they are in. An
input whose rows must meet by a key (`Operator.together`) comes through an exchange by the hash of that key; an arrangement is
in the wave, and the shard, of those who look up its rows by its key. Who looks up new rows of other shards
(`Operator.meets_new`) comes a wave later, when these are written. What an aggregate needs of rows is summed up before it is
exchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from headwater.operators.operator import Summing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from headwater.compiler.dataflow import Step
    from headwater.operators.operator import Key, Operator


@dataclass(frozen=True)
class Route:
    """What step `source` gives travels to wave `wave`: to the shards of `key`, or (None) to where it is already.

    There it is an input of others, as pairs of a step and the number of its input. If these are one aggregate that sums up
    what it can before, it is `combined`.
    """

    source: int
    wave: int
    key: Key | None
    combined: bool
    feeds: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Waves:
    """The wave of each step, −1 if nothing reaches it, and the ways between waves."""

    of: tuple[int, ...]
    routes: tuple[Route, ...]
    told: Mapping[int, int]
    """The arrangements whose new runs later waves look into, whatever shard they are of, with the last such wave."""

    @property
    def count(self) -> int:
        return max(self.of) + 1


def waves(
    steps: Sequence[Step],
    entering: Collection[int],
    arranged: Collection[int] = (),
    wanted: Collection[int] = (),
    resting: Collection[int] = (),
) -> Waves:
    """The waves of steps, each after its inputs; changes of the `entering` ones come from outside, into wave 0.

    Of these the `arranged` ones are there as a whole already, and nothing is done to keep them. The `resting` ones are only
    read, as they are. What the `wanted` ones give goes to the driver, after the last wave.
    """
    return _Planning(steps, frozenset(entering), frozenset(arranged), frozenset(resting)).planned(wanted)


class _Planning:
    def __init__(
        self, steps: Sequence[Step], entering: frozenset[int], arranged: frozenset[int], resting: frozenset[int]
    ) -> None:
        self._steps = steps
        self._entering = entering
        self._arranged = arranged
        self._numbers = {step: number for number, step in enumerate(steps)}
        self._of = [-1] * len(steps)
        for number in range(len(steps)):
            if number not in resting:
                self._of[number] = 0 if number in entering else self._wave(number)

    def planned(self, wanted: Collection[int]) -> Waves:
        found: dict[tuple[int, int, Key | None, bool, int | None], list[tuple[int, int]]] = {}
        told: dict[int, int] = {}
        for number, i, child in self._edges():
            key, wave = self._key(number, i), self._of[number]
            if self._is_local(number, i, child) and self._of[child] == wave:
                continue
            if self._is_local(number, i, child):
                key = None
            if self._is_looked_into(number, i, child):
                told[child] = max(wave, told.get(child, wave))
            combined = key is not None and self._combines(number)
            found.setdefault((child, wave, key, combined, number if combined else None), []).append((number, i))
        routes = (Route(source, wave, key, combined, tuple(f)) for (source, wave, key, combined, _), f in found.items())
        end = max(self._of) + 1
        leaving = (Route(number, end, None, combined=False, feeds=()) for number in wanted if self._of[number] >= 0)
        return Waves(tuple(self._of), (*routes, *leaving), told)

    def _edges(self) -> Iterator[tuple[int, int, int]]:
        """Inputs that changes reach, of the steps that run: the step, the number of its input, and where that comes from."""
        for number in range(len(self._steps)):
            if number not in self._entering and self._of[number] >= 0:
                for i, child in self._reached(number).items():
                    yield number, i, child

    def _wave(self, number: int) -> int:
        found = -1
        for i, child in self._reached(number).items():
            later = not self._is_local(number, i, child) or self._is_looked_into(number, i, child)
            found = max(found, self._of[child] + later)
        return found

    def _reached(self, number: int) -> dict[int, int]:
        """The inputs of a step that changes reach, and the steps that they come from."""
        children = {i: self._numbers.get(given, -1) for i, given in enumerate(self._steps[number].inputs)}
        return {i: child for i, child in children.items() if child >= 0 and self._of[child] >= 0}

    def _is_looked_into(self, number: int, i: int, child: int) -> bool:
        """Whether a step meets the new rows of an input that the job arranges, in all shards."""
        return self._is_kept(child) and i in self._steps[number].operator.meets_new(self._reached(number))

    def _is_kept(self, child: int) -> bool:
        """Whether the job itself arranges what the step gives."""
        return self._steps[child].operator.keeps_rows and child not in self._arranged

    def _is_local(self, number: int, i: int, child: int) -> bool:
        """Whether rows of an input can be used in the shard in which they are."""
        looked_up = self._steps[number].operator.arranged_by()[i] is not None
        return self._key(number, i) is None or (looked_up and self._is_kept(child))

    def _key(self, number: int, i: int) -> Key | None:
        """The columns by which the rows of an input must meet; an arrangement is where those are who look rows up in it."""
        operator = self._steps[number].operator
        if not operator.keeps_rows:
            return operator.together[i]
        meeting = (
            reader.arranged_by()[i] is not None and reader.together[i] is not None
            for reader, i in self._readers.get(self._steps[number], ())
        )
        return operator.lineage if any(meeting) else None

    @cached_property
    def _readers(self) -> dict[Step, list[tuple[Operator, int]]]:
        found: dict[Step, list[tuple[Operator, int]]] = {}
        for step in self._steps:
            for i, given in enumerate(step.inputs):
                found.setdefault(given, []).append((step.operator, i))
        return found

    def _combines(self, number: int) -> bool:
        operator = self._steps[number].operator
        return isinstance(operator, Summing) and operator.combines
