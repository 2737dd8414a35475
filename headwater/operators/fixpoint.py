"""Fixpoint: relations defined by themselves, exact under insertions and deletions, at a cost that follows the change.

    derivations   D(x, s) = how many ways there are to derive x from rows of which the latest has rank s − 1
    rank          ρ(x)    = the round in which x was believed;   x is believed  iff  Σ D(x, s) over s ≤ ρ(x)  is positive

A row is believed because of rows that were believed before it, never because of itself: that is what a count alone cannot say
where rows support each other in a circle. Ranks travel through the body as one more column, of which a join takes the greater.

    an epoch      the changes of the inputs go through the body once and change D, as does each row that is believed or dropped;
                  rounds are done in ascending order, each over the rows of which a derivation changed there; once nothing waits
                  to be dropped, all that is derived may be believed at once, whatever its round
    round r       x, believed at ρ ≤ r, without derivations from before ρ  →  dropped;  x believed at ρ > r waits for round ρ
                  x, not believed                                          →  believed at its earliest derivation s, in round s

Ranks stay as they are while they hold, though there may be a shorter way by now: an insertion touches only rows that are new, a
deletion only rows all of whose earlier derivations are gone. Whether a row is there does not depend on the ranks:

    proof    when nothing is left to do, all that is derivable from believed rows is believed, so they contain the least
             fixpoint; and by induction over ranks each of them is derivable, so it contains them.

The best of a group (MIN, MAX) is the same with values: the group believes its best derived value, with the rank of that, and
a better one replaces it: when nothing waits to be dropped, so that all that is believed is derivable, and the best ones first,
as Dijkstra does. By monotony (the compiler sees to it) a better value below never makes a worse one above, so what is believed
in the end is again both closed and derivable by induction over ranks, which only the least fixpoint is.

UNION ALL keeps no ranks: what changes goes round, Δ ← body(Δ), until nothing is left.

The trap: differences that do not cancel would go round for ever. Whatever is believed or dropped is emitted once, and a limit
on rounds and rows ends a recursion that has no end, with nothing changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.delta import Delta
from headwater.errors import RecursionLimit
from headwater.operators import rounds as compiled_rounds
from headwater.operators.arrange import Arrange
from headwater.operators.bodies import Program, program_of
from headwater.operators.operator import Input, Operator, schema_of
from headwater.operators.ordering import column_ranks
from headwater.operators.settling import Found, normal, settled
from headwater.picking import rows_at
from headwater.state.arrangement import Arrangement
from headwater.state.consolidation import consolidate, group_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from headwater.algebra.plan import Types
    from headwater.operators.multijoin import Choice
    from headwater.operators.operator import Key, State

    Int64s = NDArray[np.int64]

RANK = pa.int64()
# After all rounds.
_LAST = (1 << 62) - 1
# Of the values that contend, so many of the best are believed at a time, or this share of them.
_FEW = 256
_SHARE = 64
# More rounds than this, to one that leads further than all before it, lead nowhere.
_MANY = 100


@dataclass(frozen=True)
class Rows(Operator):
    """Where the rows so far of a relation enter the body, with their ranks."""

    types: Types
    relation: int
    maintenance = "linear"
    rule = "the rows so far"

    def arranged_by(self) -> tuple[Key | None, ...]:
        return ()

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        return state, inputs[0].delta


@dataclass(frozen=True)
class Believed:
    """A relation within the fixpoint: a set; or the best value (the last column) of each group; or a bag."""

    name: str
    types: Types
    kind: str

    @property
    def keys(self) -> int:
        return len(self.types) - (self.kind in ("min", "max"))


@dataclass(frozen=True)
class Line:
    """An operator of the body: inputs are relations and then lines by number, or inputs of the fixpoint as −1, −2 and so on."""

    operator: Operator
    inputs: tuple[int, ...]


@dataclass(frozen=True)
class Fixpoint(Operator):
    """Gives the rows of relation `result`; `bodies` are the lines that derive the rows of each, with their ranks."""

    types: Types
    relations: tuple[Believed, ...]
    lines: tuple[Line, ...]
    bodies: tuple[int, ...]
    result: int
    inputs: int
    rounds: int
    rows: int
    choice: Choice
    rule = "x ∈ X iff x has a derivation from rows believed before it;  rounds in ascending order, over what changed"

    @property
    def monoid(self) -> str:
        return "+ (derivations by round)"

    @property
    def lineage(self) -> Key:
        return tuple(range(len(self.types)))

    def arranged_by(self) -> tuple[Key | None, ...]:
        return (None,) * self.inputs

    @property
    def together(self) -> tuple[Key | None, ...]:
        """One task does all rounds: what is derived in one of them is looked up in the next."""
        return ((),) * self.inputs

    def meets_new(self, changed: Collection[int]) -> Collection[int]:
        """Joins of the body look up inputs as they are after the epoch."""
        return changed

    def start(self) -> tuple[State, Delta]:
        kept = [Arrangement.empty(self.schemas[i], range(relation.keys)) for i, relation in enumerate(self.relations)]
        figures = Arrangement.empty(schema_of((pa.int64(), pa.int64())), ())
        return (*kept, *(part for line in self.lines for part in line.operator.start()[0]), figures), self.nothing()

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        return _Epoch(self, state, inputs).run()

    def told(self, state: State) -> tuple[str, ...]:
        """What a state says of the rounds that it took."""
        figures = state[-1].contents().rows.to_pylist() if state else []
        return tuple(f"rounds: {each['c0']} for the last change, ranks up to {each['c1']}" for each in figures)

    def endless(self, relation: int, row: tuple[object, ...], *, of_rows: bool) -> RecursionLimit:
        """What is said of a recursion that goes on where it should have ended, about to add a row."""
        what = f"{self.rows} rows" if of_rows else f"{self.rounds} rounds"
        return RecursionLimit(
            f"the recursion of {self.relations[relation].name!r} has not ended after {what}, and nothing was changed. "
            f"It was about to add {row!r}. Bound it (a condition on the row that grows, or MIN), "
            "or raise the limit: WITH RECURSIVE r MAX RECURSION LEVEL n AS …, or spark.sql.cteRecursionRowLimit for rows"
        )

    @cached_property
    def schemas(self) -> tuple[pa.Schema, ...]:
        """Of the derivations of each relation: its columns and the round."""
        return tuple(schema_of((*relation.types, RANK)) for relation in self.relations)

    @cached_property
    def program(self) -> Program | None:
        """What compiled rounds run in place of the body; None if it is not for them."""
        return program_of(self)

    @cached_property
    def arranging(self) -> frozenset[int]:
        """The lines that keep rows, and those that lead to them."""
        found: set[int] = set()
        for i, line in reversed(list(enumerate(self.lines))):
            if i in found or isinstance(line.operator, Arrange):
                found |= {i, *(source - len(self.relations) for source in line.inputs)}
        return frozenset(i for i in found if i >= 0)

    @cached_property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Where the states of each line are."""
        ends = np.cumsum([len(self.relations), *(len(line.operator.start()[0]) for line in self.lines)]).tolist()
        return tuple(pairwise(ends))


@dataclass
class _Round:
    """What waits for a round: rows of relations that are to be settled, and deltas of bags."""

    waiting: dict[int, list[pa.RecordBatch]] = field(default_factory=dict)
    passing: dict[int, list[Delta]] = field(default_factory=dict)


class _Epoch:
    """One change on its way to the next fixpoint; the states are values, and this holds the latest ones."""

    def __init__(self, fixpoint: Fixpoint, state: State, inputs: Sequence[Input]) -> None:
        self._fixpoint = fixpoint
        self._inputs = inputs
        count = len(fixpoint.relations)
        self._derived = list(state[:count])
        self._states = [state[start:end] for start, end in fixpoint.places]
        self._figures = state[-1]
        self._rounds: dict[int, _Round] = {}
        self._heap: list[int] = []
        self._losing: set[int] = set()
        self._contending: dict[int, list[pa.RecordBatch]] = {}
        self._results: list[Delta] = []
        self._done = 0
        self._depth = 0
        self._touched = 0
        self._latest = 0

    def run(self) -> tuple[State, Delta]:
        nothing: list[Delta | None] = [None] * len(self._derived)
        derived = self._derive(nothing, [Input(i.delta, i.before, i.after) for i in self._inputs])
        later = [Input(_none(i.delta), i.after, i.after) for i in self._inputs]
        program = self._fixpoint.program
        if program is not None:
            after = [each.after for each in self._inputs]
            finished = compiled_rounds.run(self._fixpoint, program, derived, self._derived, after)
            if finished is not None:
                return self._finish(finished, later)
        self._count_all(derived, nothing)
        while self._heap or self._contending:
            emitted = self._next_round() if self._heap else self._best()
            self._done += 1
            if any(delta is not None for delta in emitted):
                self._require_bounded(emitted)
                self._follow(emitted, later)
        return self._ended()

    def _finish(self, epoch: compiled_rounds.Epoch, later: list[Input]) -> tuple[State, Delta]:
        """Takes over what compiled rounds found: derivations, and rows for whom the body looks up."""
        fixpoint = self._fixpoint
        for relation in range(len(epoch.derivations)):
            # There may be many of them: they are let go as soon as they are in a run.
            delta, epoch.derivations[relation] = epoch.derivations[relation], None
            if delta is not None:
                self._derived[relation] = self._derived[relation].insert(delta)
            del delta
        if any(delta is not None for delta in epoch.rows):
            self._derive(epoch.rows, later, fixpoint.arranging)
        result = epoch.rows[fixpoint.result]
        if result is not None:
            self._results.append(result.select(range(len(fixpoint.types))))
        self._done, self._latest = epoch.done, epoch.latest
        return self._ended()

    def _ended(self) -> tuple[State, Delta]:
        output = consolidate(Delta.concat(self._results)) if self._results else self._fixpoint.nothing()
        states = [part for line in self._states for part in line]
        return (*self._derived, *states, self._counted()), output

    # -- rounds

    def _next_round(self) -> list[Delta | None]:
        """What each relation gains and loses in the next round: rows with their ranks.

        If nothing can be lost any more, all that waits is derivable, in whatever round.
        """
        if self._losing:
            number = heappop(self._heap)
            self._losing.discard(number)
            due = [self._rounds.pop(number)]
        else:
            number = _LAST
            due, self._rounds, self._heap = [self._rounds[n] for n in sorted(self._rounds)], {}, []
        emitted: list[Delta | None] = [None] * len(self._derived)
        for relation, settings in enumerate(self._fixpoint.relations):
            if settings.kind == "bag":
                deltas = [delta for each in due for delta in each.passing.get(relation, ())]
                delta = consolidate(Delta.concat(deltas)) if deltas else None
                emitted[relation] = delta if delta is not None and len(delta) else None
            else:
                batches = [batch for each in due for batch in each.waiting.get(relation, ())]
                emitted[relation] = self._settled(relation, number, batches) if batches else None
        return emitted

    def _best(self) -> list[Delta | None]:
        """The same where nothing waits: the best of the values that contend are believed."""
        emitted: list[Delta | None] = [None] * len(self._derived)
        contending, self._contending = self._contending, {}
        for relation, batches in contending.items():
            settings = self._fixpoint.relations[relation]
            rows = pa.concat_batches(batches) if len(batches) > 1 else batches[0]
            few = max(_FEW, len(rows) // _SHARE)
            if len(rows) > few:
                values = column_ranks(rows.column(settings.keys), descending=settings.kind == "max", nulls_first=False)
                chosen = values <= np.partition(values, few)[few]
                if not chosen.all():
                    self._contending[relation] = [rows_at(rows, np.flatnonzero(~chosen))]
                    rows = rows_at(rows, np.flatnonzero(chosen))
            emitted[relation] = self._settled(relation, 0, [rows.select(range(settings.keys))], eager=True)
        return emitted

    def _settled(self, relation: int, number: int, batches: list[pa.RecordBatch], *, eager: bool = False) -> Delta | None:
        """The rows of a relation that are believed or dropped in a round, of those that wait for it; the others wait on."""
        settings = self._fixpoint.relations[relation]
        rows = pa.concat_batches(batches) if len(batches) > 1 else batches[0]
        groups = group_rows(rows, range(settings.keys))
        # As they are, if they differ: they are packed already.
        keys = rows if groups.count == len(rows) else rows_at(rows, groups.representatives)
        found = self._derived[relation].lookup(keys, range(settings.keys))
        columns = found.rows.columns
        rounds = columns[-1].to_numpy()
        valued = settings.kind != "set"
        values = column_ranks(columns[-2], descending=settings.kind == "max", nulls_first=False) if valued else rounds
        derivations = Found(found.probe, values, rounds, found.weights)
        at, ranks, weights, later, wait, contending = settled(derivations, keys.num_rows, number, valued=valued, eager=eager)
        for chosen, losing in ((wait < 0, True), (wait > 0, False)):
            if np.count_nonzero(chosen):
                self._wait(relation, rows_at(keys, later[chosen]), np.abs(wait[chosen]), losing=losing)
        if len(contending):
            self._contending.setdefault(relation, []).append(rows_at(found.rows, contending).select(range(len(settings.types))))
        if not len(at):
            return None
        chosen = rows_at(found.rows, at).columns[:-1]
        return Delta(pa.RecordBatch.from_arrays([*chosen, pa.array(ranks)], schema=self._fixpoint.schemas[relation]), weights)

    # -- the body

    def _follow(self, emitted: list[Delta | None], inputs: list[Input]) -> None:
        """Takes what relations emitted through the body; what it derives is counted and waits."""
        self._count_all(self._derive(emitted, inputs), emitted)

    def _derive(
        self, emitted: list[Delta | None], inputs: list[Input], only: Collection[int] | None = None
    ) -> list[Delta | None]:
        """What each body derives of what relations emitted and what inputs changed; or no more than some of the lines do."""
        fixpoint = self._fixpoint
        deltas: list[Delta | None] = [*emitted, *([None] * len(fixpoint.lines))]
        before: list[State] = [*self._states]
        for i, line in enumerate(fixpoint.lines):
            if only is not None and i not in only:
                continue
            arrived = [self._arrived(source, deltas, inputs, before) for source in line.inputs]
            if any(len(each.delta) for each in arrived):
                self._states[i], delta = line.operator.step(self._states[i], arrived)
                deltas[len(emitted) + i] = delta if len(delta) else None
        return [deltas[body] if body >= 0 else inputs[-1 - body].delta for body in fixpoint.bodies]

    def _count_all(self, derived: list[Delta | None], marks: list[Delta | None]) -> None:
        for relation in range(len(derived)):
            self._count(relation, derived[relation], marks[relation])

    def _arrived(self, source: int, deltas: list[Delta | None], inputs: list[Input], before: list[State]) -> Input:
        if source < 0:
            return inputs[-1 - source]
        fixpoint = self._fixpoint
        relations = len(fixpoint.relations)
        delta = deltas[source]
        if source < relations:
            return Input(Delta.empty(fixpoint.schemas[source]) if delta is None else delta)
        line = source - relations
        operator = fixpoint.lines[line].operator
        delta = operator.nothing() if delta is None else delta
        if not isinstance(operator, Arrange):
            return Input(delta)
        return Input(delta, before[line][0], self._states[line][0])

    def _count(self, relation: int, derived: Delta | None, marks: Delta | None) -> None:
        """Adds derivations to what is known of a relation's rows, and what its rows are believed by now."""
        settings = self._fixpoint.relations[relation]
        schema = self._fixpoint.schemas[relation]
        parts = []
        touched: pa.RecordBatch | None = None
        if derived is not None and len(derived):
            rounds = derived.rows.column(len(settings.types)).to_numpy() + 1
            columns = map(normal, derived.rows.columns[: len(settings.types)])
            batch = pa.RecordBatch.from_arrays([*columns, pa.array(rounds)], schema=schema)
            if settings.kind == "bag":
                self._at(int(rounds.min())).passing.setdefault(relation, []).append(Delta(batch, derived.weights))
                return
            parts.append(Delta(batch, derived.weights))
            touched = batch.select(range(settings.keys))
        if marks is not None and settings.kind != "bag":
            ranks = pa.array(-marks.rows.column(len(settings.types)).to_numpy())
            batch = pa.RecordBatch.from_arrays([*marks.rows.columns[:-1], ranks], schema=schema)
            parts.append(Delta(batch, marks.weights))
        if parts:
            self._derived[relation] = self._derived[relation].insert(Delta.concat(parts))
        if touched is None:
            return
        if settings.kind == "set" and rounds.min() == rounds.max():
            self._wait(relation, touched, rounds[:1], losing=derived is not None and derived.weights.min() < 0)
        else:
            # Most of many rounds would find that nothing is to be done, and values may contend.
            self._settled(relation, 0, [touched])

    def _wait(self, relation: int, keys: pa.RecordBatch, rounds: Int64s, *, losing: bool) -> None:
        """Has rows looked at in their rounds, or all of them in one; if they are losing, not before."""
        due = np.unique(rounds)
        for number in due.tolist():
            part = keys if len(due) == 1 else rows_at(keys, np.flatnonzero(rounds == number))
            self._at(number).waiting.setdefault(relation, []).append(part)
            if losing:
                self._losing.add(number)

    def _at(self, number: int) -> _Round:
        if number not in self._rounds:
            heappush(self._heap, number)
            self._rounds[number] = _Round()
        return self._rounds[number]

    # -- limits and figures

    def _require_bounded(self, emitted: list[Delta | None]) -> None:
        """Counts the rounds that lead to later ranks than any before, and the rows."""
        fixpoint = self._fixpoint
        result = emitted[fixpoint.result]
        if result is not None:
            self._results.append(result.select(range(len(fixpoint.types))))
        latest = max(
            int(pc.max(delta.rows.column(delta.rows.num_columns - 1)).as_py()) for delta in emitted if delta is not None
        )
        if latest > self._latest:
            self._depth += 1
            self._latest = latest
        self._touched += sum(len(delta) for delta in emitted if delta is not None)
        if max(self._depth, self._done // _MANY) <= fixpoint.rounds and self._touched <= fixpoint.rows:
            return
        which = next(i for i, delta in enumerate(emitted) if delta is not None)
        sample = emitted[which]
        assert sample is not None
        row = tuple(
            sample.rows.slice(len(sample) - 1).select(range(len(fixpoint.relations[which].types))).to_pylist()[0].values()
        )
        raise fixpoint.endless(which, row, of_rows=self._touched > fixpoint.rows)

    def _counted(self) -> Arrangement:
        """How many rounds the change took, and the latest of them."""
        figures = self._figures
        old = figures.contents()
        latest = max([self._latest, *old.rows.column(1).to_pylist()])
        if old.rows.column(0).to_pylist() == [self._done] and old.rows.column(1).to_pylist() == [latest]:
            return figures
        new = pa.RecordBatch.from_arrays([pa.array([self._done]), pa.array([latest])], schema=figures.schema)
        return figures.insert(Delta.concat([-old, Delta.inserting(new)]))


def _none(delta: Delta) -> Delta:
    return Delta.empty(delta.schema) if len(delta) else delta
