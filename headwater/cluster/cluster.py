"""An epoch as one Spark job: a chain of waves, with an exchange between each and the next.

    rows of changes → wave 0 → exchange by shard → wave 1 → … → notes to the driver

The job reads runs and writes runs, in a directory that the driver and all executors reach. The driver writes what is only in
its memory there, sends the order, and makes the new states of the old ones and the runs that the notes name. Nothing else
comes back: neither rows nor states pass through the driver.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from headwater.cluster import messages, progress, readiness, tasks
from headwater.cluster.messages import NOTE
from headwater.cluster.order import Merge, Order, Part
from headwater.cluster.waves import waves
from headwater.compiler.dataflow import Step
from headwater.delta import Delta
from headwater.errors import EvaluationFailed, InvalidRows, JobFailed
from headwater.evaluation.spark import failure
from headwater.runtime.driver import Outcome
from headwater.runtime.streams import Work
from headwater.state.arrangement import Arrangement
from headwater.store.folding import Fold
from headwater.store.manifest import Kept
from headwater.store.runfiles import Place, StoredRun

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

    from headwater.cluster.messages import Message
    from headwater.cluster.yard import Yard
    from headwater.operators.operator import State
    from headwater.rows import Columns
    from headwater.store.disk import Disk

# What the job is run with; the session of the user stays as it is.
_SETTINGS = {
    # One job, and as many tasks in each wave as there are shards.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "64m",
}
# Changed rows, and their bytes, that a task can hold: with more, there are more shards than cores.
_ROWS = 1 << 21
_BYTES = 256 << 20
# From so many on, the bytes that Spark expects of a plan are no number that it knows.
_UNKNOWN = 1 << 50
# With runs of more jobs than this, an arrangement is merged by the next one.
_JOBS = 6


class Refused(Exception):
    """The job met something that only the driver can decide."""


@dataclass(frozen=True)
class Frame:
    """Rows that Spark reads itself: all of them new rows of a step, once they are in its types.

    They have the columns of the step that are `read`, in order; nobody looks at the others.
    """

    rows: DataFrame
    columns: Columns
    read: tuple[int, ...]


@dataclass(frozen=True)
class Whole:
    """All rows that a step gives now, which are kept by an arrangement."""

    kept: Arrangement


Change = Delta | Frame | Whole
# What happens to a step may come from several sides.
Changes = Mapping[Step, Sequence[Change]]


@dataclass(frozen=True)
class Ran:
    """What a job did, and its shape."""

    outcome: Outcome
    waves: int
    shards: int


@dataclass
class Cluster:
    """The executors of a Spark session."""

    spark: Callable[[], SparkSession]
    zone: Callable[[], str]
    _sessions: dict[SparkSession, SparkSession] = field(default_factory=dict)
    _ready: set[tuple[str, str]] = field(default_factory=set)
    """The applications whose executors are known to be able to use a place."""

    @property
    def cores(self) -> int:
        """How many tasks run at once."""
        return int(self.spark().sparkContext.defaultParallelism)

    def run(  # noqa: PLR0913, PLR0917  (what a job is)
        self,
        steps: Sequence[Step],
        states: Mapping[Step, State],
        given: Mapping[Step, Change | Sequence[Change]],
        yard: Yard,
        title: str,
        wanted: Collection[Step] = (),
    ) -> Ran:
        """The steps, each after its inputs, after changes of some others, of which there is at most one that is `Whole`.

        Of `states` those of the steps and of their inputs are used. Where a change is `Whole`, the step's readers find all of
        it arranged already. What steps give stays where it is, but for the `wanted` ones.
        """
        self.require_ready(yard)
        changes: Changes = {step: self._readable(change) for step, change in given.items()}
        involved = _involved(steps, changes)
        fold = Fold(yard.disk, yard.new_name)
        before = {step: states.get(step, ()) for step in involved}
        fold.write([*before.values(), *((change.kept,) for _, change in _each(changes) if isinstance(change, Whole))])
        before = {step: fold.stored(state) for step, state in before.items()}
        changes = {
            step: [Whole(*fold.stored((c.kept,))) if isinstance(c, Whole) else c for c in several]
            for step, several in changes.items()
        }
        order, scratch = self._order(involved, set(steps), before, changes, yard, wanted)
        try:
            found = self._found(order, changes, title)
        except JobFailed as error:
            # Perhaps it was one of an executor that came later than the last look.
            self._ready.clear()
            self.require_ready(yard)
            if any(isinstance(change, Frame) for _, change in _each(changes)):
                # Or the rows cannot be had.
                raise unreadable(error) from error
            raise
        finally:
            for file in scratch:
                yard.disk.remove(file)
        return Ran(_outcome(order, before, found, yard.disk), order.waves.count, order.shards)

    def require_ready(self, yard: Yard) -> None:
        """Raises unless executors can do jobs in this yard; they are asked once."""
        context = self.spark().sparkContext
        asked = (context.applicationId or "", yard.disk.place)
        if asked not in self._ready and not readiness.is_local(context):
            title = "Headwater asks whether executors are ready"
            with _failing(title), _titled(context, title):
                readiness.require_ready(context, self.cores, yard)
        self._ready.add(asked)

    def _order(  # noqa: PLR0913, PLR0917  (what an order says)
        self,
        steps: Sequence[Step],
        run: Collection[Step],
        states: Mapping[Step, State],
        changes: Changes,
        yard: Yard,
        wanted: Collection[Step],
    ) -> tuple[Order, list[str]]:
        """The order, and the files that hold changes until the job is done."""
        numbers = {step: number for number, step in enumerate(steps)}
        shards = self._shards(changes)
        parts: list[list[Part]] = []
        scratch: list[str] = []
        kept = {number: tuple(map(Kept.stored, states[step])) for step, number in numbers.items()}
        for step, change in _each(changes):
            if isinstance(change, Delta) and len(change):
                scratch.append(yard.new_name())
                body = messages.packed(change)
                yard.disk.write(scratch[-1], lambda sink, body=body: sink.write(body))  # type: ignore[misc]
                bounds = [len(change) * i // shards for i in range(shards + 1)]
                parts.append([Part(numbers[step], scratch[-1], *pair) for pair in itertools.pairwise(bounds)])
            elif isinstance(change, Whole):
                kept[numbers[step]] = (Kept.stored(change.kept),)
                parts.append([Part(numbers[step], None, i, i + 1) for i in range(shards)])
        arranged = frozenset(numbers[s] for s, c in _each(changes) if isinstance(c, Whole) and s.operator.keeps_rows)
        entering = frozenset(numbers[step] for step in changes)
        resting = [number for step, number in numbers.items() if step not in run and number not in entering]
        planned = waves(steps, entering, arranged, [numbers[step] for step in wanted], resting)
        prefix = yard.new_name().removesuffix(".arrow")
        stored = tuple(kept[number] for number in range(len(steps)))
        order = Order(
            place=yard.disk.address,
            prefix=prefix,
            zone=self.zone(),
            shards=shards,
            steps=tuple(steps),
            states=stored,
            waves=planned,
            entering=entering,
            arranged=arranged,
            # Each task gets a part of every change.
            parts=tuple(part for group in zip(*parts, strict=True) for part in group),
            merges=tuple(merge for number, step in enumerate(steps) for merge in due(number, states[step])) if parts else (),
        )
        return order, scratch

    def _shards(self, changes: Changes) -> int:
        found = [change for _, change in _each(changes)]
        sizes = [c.rows if isinstance(c, Delta) else c.kept for c in found if not isinstance(c, Frame)]
        parts = max(-(-sum(map(len, sizes)) // _ROWS), -(-sum(size.nbytes for size in sizes) // _BYTES))
        frames = [pieces(change.rows) for change in found if isinstance(change, Frame)]
        return max(self.cores, -(-parts // self.cores) * self.cores, *frames, 1)

    def _readable(self, change: Change | Sequence[Change]) -> list[Change]:
        """Changes with frames that are read in the session of the job."""
        several = [change] if isinstance(change, Delta | Frame | Whole) else change
        return [replace(c, rows=self.moved(c.rows)) if isinstance(c, Frame) else c for c in several]

    def _found(self, order: Order, changes: Changes, title: str) -> list[Message]:
        """What reaches the driver."""
        session = self.session()
        text = order.text()
        frames = [
            change.rows.mapInArrow(tasks.take_in(text, order.numbers[step], change.columns, change.read), messages.SCHEMA)
            for step, change in _each(changes)
            if isinstance(change, Frame)
        ]
        if order.parts:
            parts = session.range(0, len(order.parts), 1, order.shards)
            # First, so that its tasks have the numbers of shards.
            frames.insert(0, parts.mapInArrow(tasks.bring_in(text), messages.SCHEMA))
        frame = union(frames)
        for wave in range(1, order.waves.count):
            frame = frame.repartitionById(order.shards, "shard").mapInArrow(tasks.go_on(text, wave), messages.SCHEMA)
        found = self.collected(frame, title)
        for message in found:
            if message.route == NOTE and "refused" in message.content:
                raise refusal(message.content)
        return found

    def collected(self, frame: DataFrame, title: str) -> list[Message]:
        """Runs a job whose rows are messages to the driver."""
        context = frame.sparkSession.sparkContext
        with _failing(title), _titled(context, title), progress.shown(context, title):
            return list(messages.received(frame.toArrow().to_batches()))

    def session(self) -> SparkSession:
        """A session like the user's, with the settings of jobs."""
        from pyspark.sql import SparkSession

        spark = self.spark()
        if spark not in self._sessions:
            session = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())  # noqa: SLF001
            for name, value in _SETTINGS.items():
                session.conf.set(name, value)
            self._sessions = {spark: session}
        return self._sessions[spark]

    def moved(self, frame: DataFrame) -> DataFrame:
        """The same rows, read in the session of the job."""
        from pyspark.sql import DataFrame

        session = self.session()
        jvm: Any = session._jvm  # noqa: SLF001
        of_rows = getattr(jvm.org.apache.spark.sql.classic.Dataset, "ofRows")  # noqa: B009  (py4j)
        return DataFrame(of_rows(session._jsparkSession, frame._jdf.queryExecution().analyzed()), session)  # noqa: SLF001


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of all, one or more, the tasks of the first of which have the first numbers."""
    return reduce(lambda all_before, frame: all_before.union(frame), frames)


def _each(changes: Changes) -> Iterator[tuple[Step, Change]]:
    return ((step, change) for step, several in changes.items() for change in several)


def pieces(frame: DataFrame) -> int:
    """How many tasks read the rows, or should work on them if they are many."""
    execution = frame._jdf.queryExecution()  # noqa: SLF001
    size = int(execution.optimizedPlan().stats().sizeInBytes())
    # Where Spark does not know, it says something enormous.
    many = 0 if size >= _UNKNOWN else size // _BYTES
    return max(int(execution.toRdd().getNumPartitions()), many)


def unreadable(error: JobFailed) -> EvaluationFailed:
    """What Spark says of a job that reads rows of users."""
    return EvaluationFailed(failure(error.__cause__ or error))


def refusal(note: dict[str, str]) -> Exception:
    """What a task refused, as an error: rows that do not fit are refused by the driver as well."""
    if note["code"] == InvalidRows.code:
        return InvalidRows(note["refused"])
    return Refused(note["refused"])


def _involved(steps: Sequence[Step], changes: Collection[Step]) -> list[Step]:
    """What an order lists: the steps that run, and those they read, each after its inputs."""
    found = dict.fromkeys(changes)
    for step in steps:
        found.update(dict.fromkeys(step.inputs))
        found[step] = None
    return list(found)


def _outcome(order: Order, before: Mapping[Step, State], found: Sequence[Message], disk: Disk) -> Outcome:
    """The states with the runs that are new, what was wanted, and what the steps did."""
    new: dict[Step, dict[int, list[StoredRun]]] = {}
    merged: dict[tuple[int, int], list[StoredRun]] = {(m.step, m.arrangement): [] for m in order.merges}
    work: dict[Step, Work] = {}
    outputs: dict[Step, list[Delta]] = {}
    for message in found:
        if message.route != NOTE:
            source = order.steps[order.waves.routes[message.route].source]
            outputs.setdefault(source, []).append(messages.unpacked(message.body, vectors=False))
            continue
        note = message.content
        for number, part, place in note["runs"]:
            new.setdefault(order.steps[number], {}).setdefault(part, []).append(StoredRun(disk, Place(**place)))
        for number, part, place in note["merged"]:
            merged[number, part].append(StoredRun(disk, Place(**place)))
        for number, (rows_in, rows_out, seconds) in note["work"].items():
            step = order.steps[int(number)]
            done = work.get(step, Work(0, 0, 0.0))
            work[step] = Work(done.rows_in + int(rows_in), done.rows_out + int(rows_out), done.seconds + seconds)
    shaped = {(m.step, m.arrangement): (m.kept, merged[m.step, m.arrangement]) for m in order.merges}
    outcome = Outcome(outputs={step: Delta.concat(parts) for step, parts in outputs.items()}, work=work)
    for step, state in before.items():
        fresh = new.get(step, {})
        number = order.numbers[step]
        outcome.states[step] = tuple(
            _with(kept, fresh.get(part, ()), *shaped.get((number, part), ())) for part, kept in enumerate(state)
        )
        if step.operator.keeps_rows and fresh:
            outcome.arranged[step] = _with(Arrangement.empty(state[0].schema, state[0].key), fresh[0])
    return outcome


def _with(
    before: Arrangement, new: Sequence[StoredRun], kept: int | None = None, merged: Sequence[StoredRun] = ()
) -> Arrangement:
    """An arrangement with new runs; all but the `kept` first of its own are merged into others."""
    return Arrangement(before.schema, before.key, before.width, (*before.runs[:kept], *merged, *new))


def due(number: int, state: State) -> Iterator[Merge]:
    """What is to be merged: of runs of many jobs, those from the first job on that left no more rows than all after it.

    The runs that the tasks of a job left are parts of one, by ranges of hashes, and counted as one.
    """
    for i, arrangement in enumerate(state):
        jobs: list[tuple[int, int]] = []
        for _, runs in itertools.groupby(enumerate(arrangement.runs), lambda each: tasks.job_of(each[1].file) or each[0]):
            left = list(runs)
            jobs.append((left[0][0], sum(len(run) for _, run in left)))
        sizes = [rows for _, rows in jobs]
        if len(jobs) > _JOBS:
            worth = (first for at, (first, rows) in enumerate(jobs) if rows <= sum(sizes[at + 1 :]))
            yield from (Merge(number, i, first) for first in itertools.islice(worth, 1))


@contextmanager
def _failing(title: str) -> Iterator[None]:
    """What Spark gives up, as an error of ours."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        why = why_given_up(str(error)) or type(error).__name__
        message = f"Spark gave up the job {title!r}: {why}; nothing was changed: try again, or set the placement to driver"
        raise JobFailed(message) from error


def why_given_up(said: str) -> str:
    """The line that has the reason: what ends the last of Python's stacks, or else the first line."""
    lines = [line.rstrip() for line in said.splitlines() if line.strip()]
    calls = [i for i, line in enumerate(lines) if line.startswith('  File "')]
    after = lines[calls[-1] + 1 :] if calls else lines
    return next((line for line in after if not line.startswith(" ")), "").strip() or next(iter(lines), "").strip()


@contextmanager
def _titled(context: SparkContext, title: str) -> Iterator[None]:
    """What is run meanwhile has a title in Spark's UI."""
    before = context.getLocalProperty("spark.job.description")
    context.setJobDescription(title)
    try:
        yield
    finally:
        context.setLocalProperty("spark.job.description", before)  # type: ignore[arg-type]
