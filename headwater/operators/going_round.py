"""An epoch of a fixpoint, a round at a time: the change on its way to the next fixpoint, by the rule of `fixpoint`.

Bodies that have a program are left to compiled rounds (`rounds`), and what these found is taken over; all others, and what
these give back, go through the operators of the body, round by round.

A best value that makes a better one of its own group, as on a cycle of negative costs, loses what it rests on by that, and all
begins again. What is believed at two times tells: if it is the same, and so is what contends, it will be the same for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.delta import Delta
from headwater.operators import rounds as compiled_rounds
from headwater.operators.agenda import LAST
from headwater.operators.linear import Linear
from headwater.operators.operator import Input, Joining
from headwater.operators.ordering import column_ranks
from headwater.operators.settling import Found, normal, settled
from headwater.picking import rows_at
from headwater.state.consolidation import consolidate, group_rows
from headwater.state.hashing import hash_rows
from headwater.state.slicing import collected

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from numpy.typing import NDArray

    from headwater.operators.fixpoint import Fixpoint
    from headwater.operators.operator import State
    from headwater.state.arrangement import Arrangement

    Int64s = NDArray[np.int64]

# Of the values that contend, so many of the best are believed at a time, or this share of them.
_FEW = 256
_SHARE = 64
# More rounds than this, to one that leads further than all before it, lead nowhere.
_MANY = 100
# Most changes are done in fewer rounds; from here on it is watched whether they go in a circle.
_USUAL = 1_000
_WORD = 1 << 64


@dataclass
class _Round:
    """What waits for a round: rows of relations that are to be settled, and deltas of bags."""

    waiting: dict[int, list[pa.RecordBatch]] = field(default_factory=dict)
    passing: dict[int, list[Delta]] = field(default_factory=dict)


class GoingRound:
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
        self._believed = 0
        self._watched = 0
        self._former: tuple[int, int] | None = None

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
            if not self._heap and self._done > _USUAL:
                self._require_no_circle()
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
            number = LAST
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
        count = len(emitted)
        deltas: list[Delta | None] = [*emitted, *([None] * len(fixpoint.lines))]
        # Pairs of a join that only a filter or a projection reads: these are applied part by part.
        passing: dict[int, Iterator[Delta]] = {}
        before: list[State] = [*self._states]
        for i, line in enumerate(fixpoint.lines):
            if only is not None and i not in only:
                continue
            if isinstance(line.operator, Linear) and line.inputs[0] in passing:
                parts = _applied(line.operator, passing.pop(line.inputs[0]))
            else:
                arrived = [self._arrived(source, deltas, inputs, before) for source in line.inputs]
                if not any(len(each.delta) for each in arrived):
                    continue
                if not isinstance(line.operator, Joining):
                    self._states[i], delta = line.operator.step(self._states[i], arrived)
                    deltas[count + i] = delta if len(delta) else None
                    continue
                parts = line.operator.slices(arrived)
            if i in fixpoint.passed_on and (only is None or fixpoint.passed_on[i] in only):
                passing[count + i] = parts
            else:
                deltas[count + i] = collected(parts)
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
        if not operator.keeps_rows:
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
        if self._done > _USUAL:
            self._believed += sum(
                _fingerprint(i, delta.rows, delta.weights) for i, delta in enumerate(emitted) if delta is not None
            )
        if max(self._depth, self._done // _MANY) <= fixpoint.rounds and self._touched <= fixpoint.rows:
            return
        which = next(i for i, delta in enumerate(emitted) if delta is not None)
        sample = emitted[which]
        assert sample is not None
        row = tuple(
            sample.rows.slice(len(sample) - 1).select(range(len(fixpoint.relations[which].types))).to_pylist()[0].values()
        )
        raise fixpoint.endless(which, row, of_rows=self._touched > fixpoint.rows)

    def _require_no_circle(self) -> None:
        """Compares what is believed, and contends, with what did at a former time; that time is moved on ever more seldom."""
        contending = sum(_fingerprint(i, rows, None) for i, batches in self._contending.items() for rows in batches)
        now = (self._believed % _WORD, contending % _WORD)
        if now == self._former:
            relation, batches = next(iter(self._contending.items()))
            raise self._fixpoint.circular(relation, tuple(batches[0].slice(0, 1).to_pylist()[0].values()))
        self._watched += 1
        if self._watched & (self._watched - 1) == 0:
            self._former = now

    def _counted(self) -> Arrangement:
        """How many rounds the change took, and the latest of them."""
        figures = self._figures
        old = figures.contents()
        latest = max([self._latest, *old.rows.column(1).to_pylist()])
        if old.rows.column(0).to_pylist() == [self._done] and old.rows.column(1).to_pylist() == [latest]:
            return figures
        new = pa.RecordBatch.from_arrays([pa.array([self._done]), pa.array([latest])], schema=figures.schema)
        return figures.insert(Delta.concat([-old, Delta.inserting(new)]))


def _fingerprint(relation: int, rows: pa.RecordBatch, weights: Int64s | None) -> int:
    """A sum of the hashes of rows, each by its weight: what comes and goes again leaves nothing of it."""
    hashes = hash_rows(rows, range(rows.num_columns)) * np.uint64(2 * relation + 1)
    return int((hashes if weights is None else hashes * weights.astype(np.uint64)).sum())


def _applied(operator: Linear, parts: Iterator[Delta]) -> Iterator[Delta]:
    """What a linear operator makes of parts."""
    for part in parts:
        _, found = operator.step((), [Input(part)])
        if len(found):
            yield found


def _none(delta: Delta) -> Delta:
    return Delta.empty(delta.schema) if len(delta) else delta
