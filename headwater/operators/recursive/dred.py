"""The strategies `dred` and `recompute`: sets of rows, without provenance.

    over-delete    a row goes as soon as one of its derivations does, and with it what it derives
    re-derive      a row that went, but has derivations left that use no row that went, comes back, and with it what it derives

How many derivations each row has is counted, so that what is left after over-deletion is known and not looked for: that is more
than the textbook does, and none of it is exchanged. `recompute` starts from nothing at every change.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from headwater.operators.recursive.network import Flow, Meet
from headwater.operators.recursive.places import Counters, Exchange, Places, row_bytes
from headwater.operators.recursive.strategy import Bounds
from headwater.operators.recursive.weights import WeightedJoin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.operators.recursive.network import Row, Update
    from headwater.operators.recursive.strategy import Changed, Settings


class Plain:
    """Lets everything pass to other places, and counts it."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    def ship(self, updates: list[tuple[Update, Any]]) -> list[Update]:
        shipped = []
        for (row, weight, place), target in updates:
            if target != place:
                self._counters.count(row, weight)
            shipped.append((row, weight, target))
        return shipped


class DRed:
    """Relations as sets, with the number of derivations of each row."""

    def __init__(self, settings: Settings, counters: Counters | None = None) -> None:
        self._settings = settings
        self.places = Places(settings.shards)
        self.counters = Counters() if counters is None else counters
        self._bounds = Bounds(settings)
        self._exchange = Exchange(self.places, self.counters, partial(Plain, self.counters))
        meets = {i: node for i, node in enumerate(settings.network.nodes) if isinstance(node, Meet)}
        self._joins = {i: WeightedJoin(node) for i, node in meets.items()}
        self._flow = Flow(settings.network, self._joins, self._exchange)
        self._derivations: list[dict[Row, int]] = [{} for _ in settings.network.bodies]
        self.relations: list[dict[Row, None]] = [{} for _ in settings.network.bodies]
        self._before: dict[Row, bool] = {}

    def apply(self, gone: Sequence[Sequence[Row]], come: Sequence[Sequence[Row]]) -> Changed:
        self._bounds.start()
        self._before = {}
        deleted: list[dict[Row, None]] = [{} for _ in self.relations]
        self._round({-1 - i: self._at_home(rows, -1) for i, rows in enumerate(gone)}, deleted)
        arrived = {-1 - i: self._at_home(rows, 1) for i, rows in enumerate(come)}
        for relation, rows in enumerate(deleted):
            left = [row for row in rows if self._derivations[relation].get(row, 0) > 0]
            arrived[relation] = self._inserted(relation, left)
        self._round(arrived, None)
        result = self.relations[self._settings.result]
        appeared = [row for row, there in self._before.items() if not there and row in result]
        return appeared, [row for row, there in self._before.items() if there and row not in result]

    def _round(self, arrived: dict[int, list[Update]], deleted: list[dict[Row, None]] | None) -> None:
        """Goes round until nothing new is deleted, or, without a place for what is deleted, inserted."""
        while any(arrived.values()):
            found = self._flow.push(arrived, {})
            arrived = {}
            for relation, updates in enumerate(found):
                rows = self._counted(relation, updates)
                if deleted is None:
                    arrived[relation] = self._inserted(relation, rows)
                else:
                    arrived[relation] = self._dropped(relation, rows)
                    deleted[relation] |= dict.fromkeys(update[0] for update in arrived[relation])
            self._bounds.round([arrived[relation] for relation in range(len(found))])

    def _counted(self, relation: int, updates: list[Update]) -> list[Row]:
        """Counts derivations that came or went; gives the rows."""
        derivations, there = self._derivations[relation], self.relations[relation]
        for row, weight, place in updates:
            derivations[row] = derivations.get(row, 0) + weight
            if not derivations[row]:
                del derivations[row]
            if self.places.home(row) != place:
                self.counters.add(row_bytes(row), effective=(row in there) == (weight < 0))
        return list(dict.fromkeys(update[0] for update in updates))

    def _inserted(self, relation: int, rows: list[Row]) -> list[Update]:
        there = self.relations[relation]
        new = [row for row in rows if row not in there]
        self._note(relation, new, there=False)
        there |= dict.fromkeys(new)
        return self._at_home(new, 1)

    def _dropped(self, relation: int, rows: list[Row]) -> list[Update]:
        there = self.relations[relation]
        old = [row for row in rows if row in there]
        self._note(relation, old, there=True)
        for row in old:
            del there[row]
        return self._at_home(old, -1)

    def _note(self, relation: int, rows: list[Row], *, there: bool) -> None:
        if relation == self._settings.result:
            for row in rows:
                self._before.setdefault(row, there)

    def _at_home(self, rows: Sequence[Row], weight: int) -> list[Update]:
        return [(row, weight, self.places.home(row)) for row in rows]

    def figures(self) -> dict[str, Any]:
        joined = sum(join.rows for join in self._joins.values())
        state = {"fixpoint": {"rows": sum(map(len, self.relations)), "bytes": 0}, "join": {"rows": joined, "bytes": 0}}
        return {
            "exchanged_rows": self.counters.rows,
            "exchanged_bytes": self.counters.bytes,
            "provenance_bytes_a_row": 0.0,
            "state": state,
            "rounds": self._bounds.rounds,
        }


class Recompute:
    """The rows of the inputs, and relations that are computed from them anew at every change."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._inputs: list[dict[Row, None]] = [{} for _ in range(settings.network.inputs)]
        self.counters = Counters()
        self._now = DRed(settings, self.counters)

    @property
    def relations(self) -> list[dict[Row, None]]:
        return self._now.relations

    def apply(self, gone: Sequence[Sequence[Row]], come: Sequence[Sequence[Row]]) -> Changed:
        for number, rows in enumerate(gone):
            for row in rows:
                del self._inputs[number][row]
        for number, rows in enumerate(come):
            self._inputs[number] |= dict.fromkeys(rows)
        before = self._now.relations[self._settings.result]
        self._now = DRed(self._settings, self.counters)
        self._now.apply([[] for _ in self._inputs], [list(rows) for rows in self._inputs])
        after = self._now.relations[self._settings.result]
        return [row for row in after if row not in before], [row for row in before if row not in after]

    def figures(self) -> dict[str, Any]:
        return self._now.figures()
