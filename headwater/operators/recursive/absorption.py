"""The strategy `absorption`: every row carries the function of base rows that says when it is there.

    a base row comes     a new variable, and its updates go round until all that comes is absorbed
    base rows go         one restrict with all their variables in every operator, told to every other place once;
                         lazy MinShips then ship the alternatives of what they had sent

No row is deleted that is still derivable, and none is derived again. Variables that are false everywhere may be used again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import finalize

from headwater.annotations.absorption import Functions
from headwater.annotations.conjunctions import Conjunctions
from headwater.operators.recursive.aggsel import AggSel
from headwater.operators.recursive.fixpoint import Fixpoint
from headwater.operators.recursive.join import PipelinedHashJoin
from headwater.operators.recursive.minship import MinShip
from headwater.operators.recursive.network import Flow, Meet
from headwater.operators.recursive.places import HOME, Counters, Exchange, Places
from headwater.operators.recursive.strategy import Bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.operators.recursive.functions import AnyFunctions
    from headwater.operators.recursive.network import Row, Update
    from headwater.operators.recursive.strategy import Changed, Settings

_VARIABLE_BYTES = 4
_SWEPT_AT = 64


class Absorption:
    """Relations with absorption provenance; lazy without a batch or an interval, eager with one."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        # Lazy functions are few conjunctions, eager ones have all derivations.
        eager = settings.batch is not None or settings.interval is not None
        self.functions: AnyFunctions = Functions(reordering=True) if eager else Conjunctions()
        self.variables: dict[tuple[int, Row], int] = {}
        self.owners: dict[int, tuple[int, Row]] = {}
        self.places = Places(settings.shards)
        self.counters = Counters(size=self.functions.nbytes)
        self._bounds = Bounds(settings)
        self._dead: list[int] = []
        # Nothing here refers to what it belongs to: functions must be given back before the diagrams they are parts of.
        minship = partial(MinShip, self.counters, self.functions, settings.batch, settings.interval)
        self._exchange = Exchange(self.places, self.counters, minship)
        meets = {i: node for i, node in enumerate(settings.network.nodes) if isinstance(node, Meet)}
        self.relations = [Fixpoint(self.functions) for _ in settings.network.bodies]
        self._joins = {i: self._join(node) for i, node in meets.items()}
        self._flow = Flow(settings.network, self._joins, self._exchange)
        self._home = [minship() for _ in settings.network.bodies]
        chosen = settings.selection
        self._selection = AggSel(chosen.keys, chosen.best, self.functions, self.places) if chosen else None
        # Where this dies as part of a cycle, Python would clear its parts in any order: so someone else holds on to them.
        finalize(self, _let_go, vars(self))

    def apply(self, gone: Sequence[Sequence[Row]], come: Sequence[Sequence[Row]]) -> Changed:
        self._bounds.start()
        arrived, alternatives, derived = self._deleted(gone)
        for number, rows in enumerate(come):
            for row in rows:
                variable = self.functions.new()
                self.variables[number, row] = variable
                self.owners[variable] = number, row
                arrived.setdefault(-1 - number, []).append((row, self.functions.variable(variable), self.places.home(row)))
        self._round(arrived, alternatives, derived)
        return self.relations[self._settings.result].changed()

    def _join(self, node: Meet) -> PipelinedHashJoin:
        """A join; a side that has the rows of a relation as they are, where they are, has its functions, too."""
        network = self._settings.network
        relations = [network.relation_at(child) for child in node.children]
        shared = [
            self.relations[relation].rows if relation is not None and key == HOME else None
            for relation, key in zip(relations, node.keys, strict=True)
        ]
        return PipelinedHashJoin(node, self.functions, shared)

    def _round(
        self, arrived: dict[int, list[Update]], alternatives: dict[Any, list[Update]], derived: list[list[Update]]
    ) -> None:
        """Goes round until nothing new comes and nothing waits to be shipped."""
        while True:
            while any(arrived.values()) or any(alternatives.values()) or any(derived):
                found = self._flow.push(arrived, alternatives)
                arrived, alternatives = {}, {}
                for relation, updates in enumerate(found):
                    leaving = [(update, self.places.home(update[0])) for update in updates]
                    derived[relation] += self._home[relation].ship(leaving)
                    arrived[relation] = self._believed(relation, derived[relation])
                derived = [[] for _ in found]
                self._bounds.round([arrived[relation] for relation in range(len(found))])
            derived = [ship.flush() for ship in self._home]
            alternatives = {edge: ship.flush() for edge, ship in self._exchange.edges.items()}  # type: ignore[attr-defined]
            if not any(derived) and not any(alternatives.values()):
                return

    def _believed(self, relation: int, updates: list[Update]) -> list[Update]:
        if self._selection is not None and relation == self._settings.result:
            updates = self._selection.select(updates)
        return self.relations[relation].insert(updates)

    def _deleted(
        self, gone: Sequence[Sequence[Row]]
    ) -> tuple[dict[int, list[Update]], dict[Any, list[Update]], list[list[Update]]]:
        """Sets the variables of rows that go to false everywhere; gives what is to be known instead."""
        derived: list[list[Update]] = [[] for _ in self.relations]
        dead = [self.variables.pop((number, row)) for number, rows in enumerate(gone) for row in rows]
        if not dead:
            return {}, {}, derived
        for _ in range(self.places.count - 1):
            self.counters.add(_VARIABLE_BYTES * len(dead))
        absent = self.functions.absent(dead)
        for join in self._joins.values():
            join.without(dead, absent)
        for relation in self.relations:
            relation.without(dead, absent)
        arrived: dict[int, list[Update]] = {}
        if self._selection is not None:
            result = self._settings.result
            arrived[result] = self.relations[result].insert(self._selection.without(dead, absent))
        derived = [ship.without(dead, absent) for ship in self._home]
        edges = self._exchange.edges.items()
        alternatives = {edge: ship.without(dead, absent) for edge, ship in edges}  # type: ignore[attr-defined]
        for variable in dead:
            del self.owners[variable]
        self._dead += dead
        if len(self._dead) >= _SWEPT_AT:
            self._sweep()
        return arrived, alternatives, derived

    def _sweep(self) -> None:
        """Collects dead variables: where functions wait that may still depend on them, they are set to false now."""
        for ship in (*self._home, *self._exchange.edges.values()):
            ship.sweep()  # type: ignore[attr-defined]
        self.functions.free(self._dead)
        self._dead = []

    def figures(self) -> dict[str, Any]:
        rows = sum(len(relation.rows.kept) for relation in self.relations)
        provenance = sum(relation.rows.nbytes() for relation in self.relations)
        ships = [*self._home, *self._exchange.edges.values()]
        state = {
            "fixpoint": {"rows": rows, "bytes": provenance},
            "join": _sum(self._joins.values()),
            "minship": _sum(ships),
            "aggsel": _sum([self._selection] if self._selection else []),
        }
        return {
            "exchanged_rows": self.counters.rows,
            "exchanged_bytes": self.counters.bytes,
            "provenance_bytes_a_row": provenance / rows if rows else 0.0,
            "state": state,
            "rounds": self._bounds.rounds,
        }


def _let_go(parts: dict[str, Any]) -> None:
    """The last one who knew the parts has gone: they are given back one after the other."""


def _sum(parts: Any) -> dict[str, int]:  # noqa: ANN401  (operators)
    kept = list(parts)
    return {"rows": sum(part.rows for part in kept), "bytes": sum(part.nbytes() for part in kept)}
