"""What a task does: the steps of one wave for one shard, on rows that come as messages.

    messages for the shard  ↦  messages for shards of later waves,  new runs in a file,  and a note that names them

A task changes nothing but by a file of its own, and that counts only if the note reaches the driver. So a task that is tried
again, or runs twice at once, does no harm. What only the driver can decide — Spark must evaluate something, a row is refused,
a file is damaged — is noted as well, and the driver runs the epoch itself.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from itertools import chain
from time import perf_counter
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.cluster import messages
from headwater.cluster.messages import NEWS, Message
from headwater.cluster.order import OnlyOnDriver, read
from headwater.delta import Delta
from headwater.errors import HeadwaterError
from headwater.operators.operator import Exhausted, Input, Joining, Summing
from headwater.rows import fitted, widened
from headwater.runtime.streams import Clock, Flow, absorbs, readers_of, streams_on
from headwater.state import compaction
from headwater.state.arrangement import Arrangement
from headwater.store import runfiles
from headwater.store.runfiles import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from headwater.cluster.order import Merge, Order, Part
    from headwater.compiler.dataflow import Step
    from headwater.operators.operator import State
    from headwater.rows import Columns
    from headwater.runtime.streams import Work
    from headwater.state.runs import Run

    Batches = Iterator[pa.RecordBatch]
    Given = Mapping[tuple[int, int], Delta]

# Rows, and bytes, that are brought in at a time.
_ROWS = 1 << 20
_BYTES = 64 << 20
_NOTHING_GIVEN: Given = {}
# The name of a file: that of the job, the wave, the partition and the attempt.
_TASK = re.compile(r"(.+-\d+)-\d+-\d+\.arrow")


def bring_in(text: str) -> Callable[[Batches], Batches]:
    """The tasks of wave 0: each row is the number of a part."""

    def run(batches: Batches) -> Batches:
        order = read(text)
        task = Task(order, 0)
        numbers = [number for batch in batches for number in batch.column(0).to_pylist()]
        parts = ((part.step, delta) for number in numbers for part in [order.parts[number]] for delta in _content(order, part))
        return messages.sent(task.entering(parts, merges=order.merges))

    return run


def take_in(text: str, step: int, columns: Columns, present: Sequence[int]) -> Callable[[Batches], Batches]:
    """The tasks of wave 0 on rows that Spark reads itself, all of which are new rows of a step; some columns are `present`."""

    def run(batches: Batches) -> Batches:
        task = Task(read(text), 0)
        rows = (fitted(widened(piece, present, columns.arrow.types), columns) for piece in gathered(batches))
        return messages.sent(task.entering((step, Delta.inserting(batch)) for batch in rows))

    return run


def go_on(text: str, wave: int) -> Callable[[Batches], Batches]:
    """The tasks of a later wave."""

    def run(batches: Batches) -> Batches:
        return messages.sent(Task(read(text), wave).receiving(messages.received(batches)))

    return run


class Task:
    """One wave of one shard."""

    def __init__(self, order: Order, wave: int) -> None:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        # Runs are merged by those who have all of them.
        compaction.limit_memory(0)
        self._order = order
        self._wave = wave
        self._partition = context.partitionId()
        self._shard = self._partition % order.shards
        self._name = f"{order.prefix}-{wave}-{self._partition}-{context.taskAttemptId()}.arrow"
        self._before: dict[int, State] = {}
        self._states: dict[int, State] = {}
        self._news: dict[int, list[Run]] = {}
        self._work: dict[Step, Work] = {}
        waves = order.waves
        self._own = [number for number, of in enumerate(waves.of) if of == wave and number not in order.entering]
        self._leaving = [(n, route) for n, route in enumerate(waves.routes) if waves.of[route.source] == wave]
        self._readers = readers_of(order.steps[number] for number in self._own)
        self._arriving = {n: route for n, route in enumerate(waves.routes) if route.wave == wave}

    def entering(self, deltas: Iterable[tuple[int, Delta]], merges: Iterable[Merge] = ()) -> Iterator[Message]:
        """What follows from changes that enter here; meanwhile runs are merged, of which this task does its range of hashes."""
        try:
            for step, delta in deltas:
                yield from self._advance(_NOTHING_GIVEN, {step: delta})
            yield from self._told([(merge, run) for merge in merges for run in self._merged(merge)])
        except (HeadwaterError, OnlyOnDriver, Exhausted) as error:
            yield self._refused(error)

    def receiving(self, found: Iterator[Message]) -> Iterator[Message]:
        """What follows from the messages of earlier waves."""
        arrived: dict[int, list[Delta]] = {}
        for message in found:
            if message.route >= 0 and message.wave == self._wave:
                vectors = self._arriving[message.route].combined
                arrived.setdefault(message.route, []).append(messages.unpacked(message.body, vectors=vectors))
                continue
            if message.route < 0:
                self._hear(message)
            if message.wave > self._wave:
                yield Message(message.wave, self._shard, message.route, message.body)
        try:
            given = {feed: d for n, parts in arrived.items() for d in [Delta.concat(parts)] for feed in self._arriving[n].feeds}
            del arrived
            yield from self._advance(given, {})
            yield from self._told()
        except (HeadwaterError, OnlyOnDriver, Exhausted) as error:
            yield self._refused(error)

    # -- steps

    def _advance(self, given: Given, entering: Mapping[int, Delta]) -> Iterator[Message]:
        steps = self._order.steps
        flow = Flow({steps[number]: delta for number, delta in entering.items() if len(delta)}, self._work, self._takers)
        for number in self._own:
            self._step(number, given, flow)
        for n, route in self._leaving:
            parts: Iterable[Delta] = flow.parts(steps[route.source])
            if route.combined:
                aggregate = steps[route.feeds[0][0]].operator
                assert isinstance(aggregate, Summing)
                summed = aggregate.sums(parts)
                parts = [] if summed is None else [summed]
            for delta in parts:
                to = self._shard if route.key is None else messages.shards_of(delta, route.key, self._order.shards)
                yield from messages.deltas(route.wave, n, delta, to)

    def _takers(self, step: Step) -> list[bool]:
        """For all who read what a step gives, whether they take it part by part: those who are sent it do."""
        readers = [streams_on(reader) for reader in self._readers.get(step, ())]
        return [*readers, *(True for _, route in self._leaving if self._order.steps[route.source] is step)]

    def _step(self, number: int, given: Given, flow: Flow) -> None:
        step = self._order.steps[number]
        if not flow.reaches(step) and not any((number, i) in given for i in range(len(step.inputs))):
            return
        operator, state = step.operator, self._state(number)
        if operator.passes_slices and flow.has_stream_for(step):
            self._states[number] = state
            # A union may have one input from an earlier wave, and a stream of this one for another.
            flow.pass_on(step, {i: given[number, i] for i in range(len(step.inputs)) if (number, i) in given})
            return
        if (number, 0) not in given and absorbs(step) and flow.has_stream_for(step):
            self._states[number] = flow.sum_up(step, state)
            return
        deltas = [given[number, i] if (number, i) in given else flow.delta(child) for i, child in enumerate(step.inputs)]
        if not any(map(len, deltas)):
            return
        inputs = [self._input(self._order.numbers[child], delta) for child, delta in zip(step.inputs, deltas, strict=True)]
        if isinstance(operator, Joining):
            self._states[number] = state
            flow.join(step, inputs)
            return
        started = perf_counter()
        if (number, 0) in given and isinstance(operator, Summing) and operator.combines:
            self._states[number], output = operator.step_of_sums(state, deltas[0])
        else:
            self._states[number], output = operator.step(state, inputs)
        flow.keep(step, output)
        Clock(self._work).add(step, sum(map(len, deltas)), len(output), perf_counter() - started)

    def _input(self, child: int, delta: Delta) -> Input:
        if not self._order.steps[child].operator.keeps_rows:
            return Input(delta)
        whole = self._initial(child)[0]
        if child in self._order.arranged:
            return Input(delta, Arrangement.empty(whole.schema, whole.key, whole.width), whole, is_shard=True)
        return Input(delta, whole, self._state(child)[0], is_shard=True)

    def _state(self, number: int) -> State:
        """The state of a step as this task knows it: before the job, with the runs it has heard of, or as it made it itself."""
        if number not in self._states:
            state = self._initial(number)
            if number in self._news:
                known = state[0]
                runs = (*known.runs, *self._news[number])
                state = (Arrangement(known.schema, known.key, known.width, runs),)
            self._states[number] = state
        return self._states[number]

    def _initial(self, number: int) -> State:
        if number not in self._before:
            self._before[number] = self._order.state(number)
        return self._before[number]

    # -- notes

    def _hear(self, message: Message) -> None:
        for step, _, place in message.content.get("runs", ()):
            if self._order.steps[step].operator.keeps_rows:
                self._news.setdefault(step, []).append(self._order.run(Place(**place)))

    def _told(self, merged: Sequence[tuple[Merge, Run]] = ()) -> Iterator[Message]:
        """Writes the new runs, and those that were merged, and tells of them."""
        new = [(number, part, run) for number in self._own for part, run in self._new_runs(number)]
        written = [*(run for _, _, run in new), *(run for _, run in merged)]
        places = [asdict(run.place) for run in runfiles.write(self._order.disk, self._name, written)] if written else []
        runs = [(number, part, place) for (number, part, _), place in zip(new, places, strict=False)]
        again = [[m.step, m.arrangement, place] for (m, _), place in zip(merged, places[len(new) :], strict=True)]
        work = {self._order.numbers[step]: (done.rows_in, done.rows_out, done.seconds) for step, done in self._work.items()}
        yield Message.note(self._end, self._shard, {"runs": runs, "merged": again, "work": work})
        waves = self._order.waves.told
        told = [run for run in runs if run[0] in waves]
        if told:
            # All waves that it passes hear of it.
            last = max(waves[number] for number, _, _ in told)
            for shard in range(self._order.shards):
                if shard != self._shard:
                    yield Message.note(last, shard, {"runs": told}, NEWS)

    def _new_runs(self, number: int) -> Iterator[tuple[int, Run]]:
        if number not in self._states:
            return
        for part, (before, after) in enumerate(zip(self._initial(number), self._states[number], strict=True)):
            known = {*before.runs, *self._news.get(number, ())}
            runs = [run for run in after.runs if run not in known]
            if runs:
                merged = after.merged(runs)
                if len(merged):
                    yield part, merged

    def _merged(self, merge: Merge) -> Iterator[Run]:
        """The runs to be merged as one, of the hashes that are this task's."""
        whole = self._initial(merge.step)[merge.arrangement]
        pieces = Arrangement(whole.schema, whole.key, whole.width, whole.runs[merge.kept :])
        run = pieces.run_within(self._partition, self._partition + 1, self._order.shards)
        if run is not None and len(run):
            yield run

    def _refused(self, error: Exception) -> Message:
        return Message.refusal(self._end, self._shard, error)

    @property
    def _end(self) -> int:
        """The wave of messages to the driver."""
        return self._order.waves.count


def job_of(file: str | None) -> str | None:
    """Which wave of which job has left a file; None if it was no task."""
    found = None if file is None else _TASK.fullmatch(file)
    return None if found is None else found[1]


def _content(order: Order, part: Part) -> Iterator[Delta]:
    """The rows of a part, some at a time."""
    if part.file is not None:
        memory = order.disk.map(part.file)
        whole = messages.unpacked(pa.py_buffer(memory), vectors=False)
        yield from _in_slices(whole.slice(part.start, part.stop - part.start))
        return
    columns = range(len(order.steps[part.step].types))
    for rows in order.state(part.step)[0].pieces_within(part.start, part.stop, order.shards):
        # Something more may be kept beside what the step gives.
        yield from _in_slices(rows if rows.rows.num_columns == len(columns) else rows.select(columns))


def _in_slices(delta: Delta) -> Iterator[Delta]:
    return delta.in_slices(max(1, min(_ROWS, _BYTES * len(delta) // max(delta.rows.nbytes, 1))))


def gathered(batches: Batches) -> Iterator[pa.RecordBatch]:
    """The same rows in larger batches."""
    waiting: list[pa.RecordBatch] = []
    count = size = 0
    for batch in chain(batches, [None]):
        if batch is not None:
            waiting.append(batch)
            count, size = count + batch.num_rows, size + batch.nbytes
        if waiting and (batch is None or count >= _ROWS or size >= _BYTES):
            yield pa.concat_batches(waiting)
            waiting, count, size = [], 0, 0
