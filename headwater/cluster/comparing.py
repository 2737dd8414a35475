"""What differs between the rows that a table has and others that it is to have, found by the executors.

    Δ  =  Σ weight · rows that Spark reads  −  rows that are kept

Equal rows have equal hashes: they meet in one shard, and cancel out. What Spark reads is exchanged for that; what is kept lies
in the order of hashes already, and each shard reads its own range. What is left comes to the driver.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from headwater.cluster import messages
from headwater.cluster.cluster import pieces, refusal, union, unreadable
from headwater.cluster.messages import NOTE, Message
from headwater.cluster.order import run_at
from headwater.cluster.tasks import gathered
from headwater.delta import Delta
from headwater.errors import HeadwaterError, JobFailed
from headwater.rows import fitted
from headwater.state.consolidation import consolidate
from headwater.store.folding import Fold
from headwater.store.manifest import Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from headwater.cluster.cluster import Cluster
    from headwater.cluster.yard import Yard
    from headwater.operators.operator import Key
    from headwater.rows import Columns
    from headwater.runtime.outside import Outside
    from headwater.state.arrangement import Arrangement

    Batches = Iterator[pa.RecordBatch]

# Rows of both sides that a task can hold.
_ROWS = 1 << 20


@dataclass(frozen=True)
class Weighted:
    """Rows outside, each with the same weight."""

    rows: Outside
    weight: int


def difference(cluster: Cluster, found: Sequence[Weighted], kept: Arrangement, yard: Yard, title: str) -> Delta:
    """The sum of the rows that Spark reads, less those that are kept, consolidated."""
    cluster.require_ready(yard)
    fold = Fold(yard.disk, yard.new_name)
    fold.write([(kept,)])
    (stored,) = fold.stored((kept,))
    frames = [(cluster.moved(each.rows.frame()), each) for each in found]
    count = max(cluster.cores, -(-len(stored) // _ROWS), *(pieces(frame) for frame, _ in frames))
    spread = [
        frame.mapInArrow(_spread(each.rows.columns, each.weight, stored.key, count), messages.SCHEMA) for frame, each in frames
    ]
    # A shard to which nothing comes has something to tell as well.
    called = cluster.session().range(0, count, 1, 1).mapInArrow(_call, messages.SCHEMA)
    met = union([called, *spread]).repartitionById(count, "shard")
    settled = met.mapInArrow(_settle(yard.disk.address, json.dumps(asdict(Kept.stored(stored))), count), messages.SCHEMA)
    parts = [Delta.empty(stored.schema)]
    try:
        left = cluster.collected(settled, title)
    except JobFailed as error:
        raise unreadable(error) from error
    for message in left:
        if message.route == NOTE:
            raise refusal(message.content)
        parts.append(messages.unpacked(message.body, vectors=False))
    return Delta.concat(parts)


def _call(batches: Batches) -> Batches:
    return messages.sent(Message.note(1, shard, {}) for batch in batches for shard in batch.column(0).to_pylist())


def _spread(columns: Columns, weight: int, key: Key, count: int) -> Callable[[Batches], Batches]:
    """The tasks that send each row to the shard of its hash."""

    def rows(batches: Batches) -> Iterator[Message]:
        try:
            for batch in gathered(batches):
                delta = Delta.inserting(fitted(batch, columns))
                weighted = Delta(delta.rows, delta.weights * weight)
                yield from messages.deltas(1, 0, weighted, messages.shards_of(weighted, key, count))
        except HeadwaterError as error:
            yield Message.refusal(1, 0, error)

    return lambda batches: messages.sent(rows(batches))


def _settle(place: str, kept: str, count: int) -> Callable[[Batches], Batches]:
    """The tasks in which equal rows meet."""

    def left(batches: Batches) -> Iterator[Message]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        shard = context.partitionId()
        parts: list[Delta] = []
        for message in messages.received(batches):
            if message.route != NOTE:
                parts.append(messages.unpacked(message.body, vectors=False))
            elif message.content:
                yield message
        try:
            whole = Kept.read(**json.loads(kept)).arrangement(lambda run: run_at(place, run))
            rest = consolidate(Delta.concat([-whole.within(shard, shard + 1, count), *parts]))
            yield from messages.deltas(2, 0, rest, shard)
        except HeadwaterError as error:
            yield Message.refusal(2, shard, error)

    return lambda batches: messages.sent(left(batches))
