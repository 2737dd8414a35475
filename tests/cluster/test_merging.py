"""Which runs a job merges: as few as keep them few."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from headwater.cluster.cluster import due
from headwater.cluster.order import Merge
from headwater.cluster.tasks import job_of


class Left(SimpleNamespace):
    """A run of so many rows in a file."""

    def __len__(self) -> int:
        return int(self.rows)


def state(*sizes: int, shards: int = 2) -> Any:
    """The runs that jobs of so many shards have left, after one of the driver's."""
    first, *jobs = sizes
    runs = [Left(file="runs/1-7.arrow", rows=first)]
    for job, size in enumerate(jobs):
        runs += [Left(file=f"runs/1-{job + 8}-1-{shard}-{9 * job}.arrow", rows=size // shards) for shard in range(shards)]
    return (SimpleNamespace(runs=runs),)


def test_tasks_of_a_job_have_left_one_run() -> None:
    assert job_of("runs/1-8-1-0-55.arrow") == job_of("runs/1-8-1-1-56.arrow")
    assert job_of("runs/1-8-1-0-55.arrow") != job_of("runs/1-9-1-0-57.arrow")
    assert job_of("runs/1-8-1-0-55.arrow") != job_of("runs/1-8-2-0-58.arrow")
    assert job_of("runs/1-8.arrow") is None
    assert job_of(None) is None


def test_few_are_left_alone() -> None:
    assert not list(due(3, state(100, 2, 2, 2, 2, 2)))
    assert not list(due(3, state(100, 2, 2, 2, 2, 2, shards=8)))


def test_small_ones_are_merged_without_large_ones() -> None:
    assert list(due(3, state(100, 20, 2, 2, 2, 2, 2))) == [Merge(3, 0, 3)]
    assert list(due(3, state(100, 20, 4, 4, 4, 4, 4))) == [Merge(3, 0, 1)]


def test_what_is_small_beside_all_before_it_stays() -> None:
    assert not list(due(3, state(6400, 3200, 1600, 800, 400, 200, 100, 50)))


def test_what_is_merged_in_all_follows_what_was_added() -> None:
    """As rows come in equal parts, each is merged a few times, and runs stay few."""
    sizes, merged, most = [1000], 0, 0
    for _ in range(500):
        for merge in due(0, state(*sizes)):
            start = (merge.kept + 1) // 2
            merged += sum(sizes[start:])
            sizes = [*sizes[:start], sum(sizes[start:])]
        sizes.append(10)
        most = max(most, len(sizes))
    assert most <= 14
    assert merged <= 8 * sum(sizes)
