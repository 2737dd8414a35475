"""The strategy `relative`: every row knows its derivations, each by the rows it uses; a deletion traverses that graph.

    a derivation comes    it is noted at the row; a row that is new goes on
    base rows go          suspects: all rows that can be reached from them;  a suspect is cleared when a derivation of it uses
                          neither a base row that went nor an uncleared suspect;  the others are gone

Rows that derive each other in a circle are never cleared by each other alone. Whether a derivation holds is asked at the places
of the rows that it uses: each such question is exchanged.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from headwater.operators.recursive.dred import Plain
from headwater.operators.recursive.network import Flow, Meet
from headwater.operators.recursive.places import Counters, Exchange, Places, row_bytes
from headwater.operators.recursive.strategy import Bounds
from headwater.operators.recursive.weights import WeightedJoin

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headwater.operators.recursive.network import Row, Update
    from headwater.operators.recursive.strategy import Changed, Settings

    Derivation = tuple[int, ...]

_ID_BYTES = 8


class Relative:
    """The derivation graph: rows of inputs and relations by number."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.places = Places(settings.shards)
        self.counters = Counters(size=lambda _: _ID_BYTES)
        self._bounds = Bounds(settings)
        self._exchange = Exchange(self.places, self.counters, partial(Plain, self.counters))
        meets = {i: node for i, node in enumerate(settings.network.nodes) if isinstance(node, Meet)}
        self._joins = {i: WeightedJoin(node, hidden=1) for i, node in meets.items()}
        self._flow = Flow(settings.network, self._joins, self._exchange, hidden=1)
        self._numbers: dict[tuple[int, Row], int] = {}
        self._owners: dict[int, tuple[int, Row]] = {}
        self._next = 0
        self._derivations: dict[int, dict[Derivation, None]] = {}
        self._users: dict[int, dict[int, None]] = {}
        self.relations: list[dict[Row, None]] = [{} for _ in settings.network.bodies]

    def apply(self, gone: Sequence[Sequence[Row]], come: Sequence[Sequence[Row]]) -> Changed:
        self._bounds.start()
        result = self._settings.result
        dead = [self._numbers[-1 - i, row] for i, rows in enumerate(gone) for row in rows]
        dropped = self._dropped(dead) if dead else {}
        went = [row for relation, row in dropped.values() if relation == result]
        arrived = {-1 - i: [self._entered(-1 - i, row) for row in rows] for i, rows in enumerate(come)}
        new: list[Row] = []
        while any(arrived.values()):
            found = self._flow.push(arrived, {})
            arrived = {relation: self._noted(relation, updates) for relation, updates in enumerate(found)}
            new += [update[0][:-1] for update in arrived[result]]
            self._bounds.round([arrived[relation] for relation in range(len(found))])
        both = set(went) & set(new)
        return [row for row in new if row not in both], [row for row in went if row not in both]

    def _entered(self, owner: int, row: Row) -> Update:
        """A row that is new to an input or a relation, with its number as the hidden column."""
        number = self._next
        self._next += 1
        self._numbers[owner, row] = number
        self._owners[number] = owner, row
        return ((*row, (number,)), 1, self.places.home(row))

    def _noted(self, relation: int, updates: list[Update]) -> list[Update]:
        """Notes derivations; gives the rows that are new."""
        new = []
        for row, _, place in updates:
            fact, derivation = row[:-1], row[-1]
            if self.places.home(fact) != place:
                self.counters.add(row_bytes(fact) + _ID_BYTES * len(derivation))
            if (relation, fact) not in self._numbers:
                self.relations[relation][fact] = None
                new.append(self._entered(relation, fact))
            number = self._numbers[relation, fact]
            self._derivations.setdefault(number, {})[derivation] = None
            for used in derivation:
                self._users.setdefault(used, {})[number] = None
        return new

    def _dropped(self, dead: list[int]) -> dict[int, tuple[int, Row]]:
        """The rows that go with base rows, by their numbers; they are forgotten everywhere."""
        suspects = self._reached(dead)
        lost = set(dead) | set(suspects)
        waiting = list(suspects)
        while waiting:
            number = waiting.pop()
            if number in lost and self._holds(number, lost):
                lost.discard(number)
                waiting += [user for user in self._users.get(number, ()) if user in lost]
        gone = {number: self._owners[number] for number in lost}
        leaving: dict[int, list[Update]] = {}
        for number, (owner, row) in gone.items():
            leaving.setdefault(owner, []).append(((*row, (number,)), -1, self.places.home(row)))
        # What the joins would give is known to be gone.
        before = replace(self.counters)
        self._flow.push(leaving, {})
        self.counters.rows, self.counters.bytes, self.counters.effective = before.rows, before.bytes, before.effective
        self._forget(gone, suspects)
        return {number: owner for number, owner in gone.items() if owner[0] >= 0}

    def _reached(self, start: Iterable[int]) -> dict[int, None]:
        found: dict[int, None] = {}
        waiting = list(start)
        while waiting:
            for user in self._users.get(waiting.pop(), ()):
                if user not in found:
                    found[user] = None
                    waiting.append(user)
        return found

    def _holds(self, number: int, lost: set[int]) -> bool:
        """Whether a derivation of the row uses nothing that is lost; the rows of other places are asked."""
        place = self.places.home(self._owners[number][1])
        for derivation in self._derivations[number]:
            for used in derivation:
                if self.places.home(self._owners[used][1]) != place:
                    self.counters.add(_ID_BYTES)
                if used in lost:
                    break
            else:
                return True
        return False

    def _forget(self, gone: dict[int, tuple[int, Row]], suspects: dict[int, None]) -> None:
        for number in suspects:
            if number not in gone:
                known = self._derivations[number]
                kept = {each: None for each in known if not any(used in gone for used in each)}
                self._derivations[number] = kept
                still = {used for each in kept for used in each}
                for used in {used for each in known for used in each} - still:
                    self._users[used].pop(number, None)
        for number, (owner, row) in gone.items():
            for derivation in self._derivations.pop(number, ()):
                for used in derivation:
                    if used in self._users:
                        self._users[used].pop(number, None)
            self._users.pop(number, None)
            del self._numbers[owner, row], self._owners[number]
            if owner >= 0:
                del self.relations[owner][row]

    def figures(self) -> dict[str, Any]:
        rows = sum(map(len, self.relations))
        size = _ID_BYTES * sum(len(each) for known in self._derivations.values() for each in known)
        joined = sum(join.rows for join in self._joins.values())
        return {
            "exchanged_rows": self.counters.rows,
            "exchanged_bytes": self.counters.bytes,
            "provenance_bytes_a_row": size / rows if rows else 0.0,
            "state": {"fixpoint": {"rows": rows, "bytes": size}, "join": {"rows": joined, "bytes": 0}},
            "rounds": self._bounds.rounds,
        }
