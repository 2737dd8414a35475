"""The store: a directory in which tables, views, epochs and the states of all operators outlive the process.

    commit    one record to the log, one sync                      what users changed, and what that changed in the views
    fold      new runs to files, then a manifest that names them   in the background; the log before it is only history
    reopen    the newest manifest, and the records after it, run through the dataflow once more

An epoch is acknowledged when its record is certain and the lease was still held after that; one that defines something, when
its manifest is. Whoever takes over writes a manifest and begins a segment at once, with its own fence: whatever an older holder
still writes is void from then on. Locks are taken in this order: `defining` of the epochs, `_folding`, `writing` of the epochs.
"""

from __future__ import annotations

import logging
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from threading import Event, Lock, RLock, Thread
from time import time
from typing import TYPE_CHECKING, Any

from headwater.errors import DamagedFile, DirectoryInUse, HeadwaterError, SessionClosed, StorageFailed
from headwater.ownership import Owner
from headwater.runtime.catalog import Snapshot
from headwater.runtime.history import ROWS
from headwater.state import compaction
from headwater.store import lease, log, manifest
from headwater.store.folding import Fold
from headwater.store.manifest import Manifest
from headwater.store.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from headwater.compiler.dataflow import Step
    from headwater.delta import Delta
    from headwater.operators.operator import State
    from headwater.runtime.catalog import Catalog
    from headwater.runtime.epochs import Epochs
    from headwater.runtime.history import Changed
    from headwater.store.disk import Disk

    Encode = Callable[[Catalog], Any]
    # Gives the catalog, and its steps by the numbers under which their states are kept.
    Decode = Callable[[Any], tuple[Catalog, Mapping[int, Step]]]

DURABILITY = ("sync", "async", "memory")
# With `async`, an epoch is certain so many seconds later at most.
LAG = 0.1
# A fold is due when so many bytes were logged, or when it would take so many seconds to run the records again.
_BYTES = 16 << 20
_SECONDS = 5.0
# Files of which a smaller share is in use are written again.
_SPARSE = 0.25

_log = logging.getLogger("headwater")


@dataclass(frozen=True)
class Retention:
    """How long changes are kept: for so many epochs, or so many seconds."""

    epochs: int | None = 10_000
    seconds: float | None = None


class Store:
    """The writer's hold on a directory, and the journal of its epochs."""

    def __init__(
        self,
        disk: Disk,
        durability: str,
        retention: Retention,
        timeout: float = lease.TIMEOUT,
        memory: int | None = None,
    ) -> None:
        self._owner = Owner()
        self._disk = disk
        self._durability = durability
        self._retention = retention
        self._epochs: Epochs | None = None
        self._folding = RLock()
        self._due = Event()
        self._over = Event()
        self._is_ending = False
        """Whether no epoch is taken any more."""
        self._seconds = 0.0
        # A job may ask for a name while a fold does.
        self._numbers = count(1)
        self._prepared = ""
        """The file of the catalog that is about to be defined."""
        self._reserving = Lock()
        self._reserved: tuple[str, ...] = ()
        """How the names of files begin that jobs on executors may have written, or be writing."""
        self._unsettled = False
        """Whether jobs may have given names that are not certain yet."""
        self._unsafe: OSError | None = None
        self._is_renumbered = False
        """Whether the catalog has other steps than the stored one, so that no manifest may go with that one."""
        self._inherited = False
        """Whether there are epochs of an earlier process that are in its log only, of which the disk may have nothing yet."""
        self._memory = memory
        with _storage(disk, "opened"):
            if not manifest.is_marked(disk):
                _mark(disk)
            self._lease = lease.acquire(disk, timeout, _highest_fence(disk))
            try:
                self._manifest = log.newest_manifest(disk) or Manifest(self._lease.fence, 0, time(), None, (), {})
                self._log = log.Writer(disk, self._lease.fence)
            except BaseException:
                self._lease.release()
                raise
        if memory is not None:
            compaction.limit_memory(memory // 4)
        self._threads = [Thread(target=self._fold_when_due, name="headwater-fold", daemon=True)]
        if durability == "async":
            self._threads.append(Thread(target=self._sync_at_times, name="headwater-sync", daemon=True))

    # -- from the directory

    def snapshot(self, decode: Decode) -> Snapshot:
        """Everything as of the newest manifest."""
        if self._manifest.catalog is None:
            return Snapshot()
        catalog, steps = decode(manifest.get(self._disk, self._manifest.catalog))
        self._is_renumbered = steps != dict(enumerate(catalog.steps))
        states: dict[Step, State] = {step: () for step in catalog.steps if not step.operator.arranged_by()}
        for number, state in enumerate(manifest.states(self._disk, self._manifest)):
            if state is not None and number in steps:
                states[steps[number]] = state
        return Snapshot(self._manifest.epoch, catalog, states, self._manifest.positions)

    @property
    def began(self) -> Mapping[str, int]:
        """The epochs with which the tables and views of that came to be."""
        return self._manifest.began

    def missing(self) -> Iterator[DamagedFile]:
        """Files that are gone, or too short for what should be in them."""
        ends: dict[str, int] = {}
        for place in self._manifest.places():
            ends[place.file] = max(ends.get(place.file, 0), place.start + place.bytes)
        for file, end in ends.items():
            size = self._disk.size(file)
            if size is None or size < end:
                what = "it is missing" if size is None else f"it has {size:,} of {end:,} bytes"
                yield DamagedFile(file, what, start=size or 0)

    def tail(self) -> Iterator[Record]:
        """What happened after that."""
        for record in log.read(self._disk, self._manifest.epoch):
            if record.began is not None:
                # A definition counts with its manifest, and there is none.
                later = log.first_after(log.segments(self._disk), record.epoch)
                if later is not None:
                    raise log.manifest_is_missing(later, record.epoch)
                return
            yield record

    def attach(self, epochs: Epochs, encode: Encode) -> None:
        """From here on, the epochs are kept. What an older holder of the lease may still write is void.

        If this fails, the directory is what it was: the manifest of before is removed by the first fold, not here.
        """
        with _storage(self._disk, "opened"), self._lease.kept():
            if self._is_renumbered:
                self._keep(epochs.now, self._put_catalog(encode(epochs.now.catalog)), self._manifest.began)
            elif self._manifest.catalog is not None:
                taken_over = replace(self._manifest, fence=self._lease.fence)
                manifest.write(self._disk, taken_over)
                self._manifest = taken_over
            self._log.begin(epochs.now.epoch + 1)
        self._epochs = epochs
        self._encode = encode
        for thread in self._threads:
            thread.start()
        if epochs.now.epoch > self._manifest.epoch:
            self._inherited = True
            self._due.set()

    # -- the journal

    def commit(self, then: Snapshot, tables: Mapping[str, Delta], views: Mapping[str, Delta], seconds: float) -> None:
        self._require_safe()
        self._seconds += seconds
        if self._durability == "memory":
            self._lease.require()
        else:
            assert self._epochs is not None
            moved = then.positions is not self._epochs.now.positions
            self._append(Record(then.epoch, time(), tables, views, positions=then.positions if moved else None))
        if self._log.bytes > _BYTES or self._seconds > _SECONDS or self._is_full(then, 0.25):
            self._due.set()

    def make_room(self) -> None:
        if self._epochs is not None and self._is_full(self._epochs.now, 0.5):
            self.fold()

    @contextmanager
    def defining(self) -> Iterator[None]:
        with self._folding:
            yield

    def prepare(self, catalog: Catalog, states: Mapping[Step, State]) -> dict[Step, State]:
        self._require_safe()
        described = self._encode(catalog)
        fold = Fold(self._disk, self._new_file)
        with _storage(self._disk, "written"):
            self._prepared = self._put_catalog(described)
            fold.write(states.values())
            if fold.bytes:
                self._disk.settle(manifest.RUNS)
        return {step: fold.exchanged(state) for step, state in states.items()}

    def _put_catalog(self, described: object) -> str:
        """Writes a catalog; gives its file."""
        name = f"{manifest.CATALOGS}/{self._lease.fence:08}-{next(self._numbers):08}.json"
        manifest.put(self._disk, name, described)
        return name

    def define(self, then: Snapshot, views: Mapping[str, Changed], began: Collection[str]) -> Snapshot:
        before = self._manifest
        known = {name: before.began.get(name, 0) for name in then.entries} | dict.fromkeys(began, then.epoch)
        if self._durability != "memory":
            told = {name: changed for name, changed in views.items() if changed.size <= ROWS}
            untold = sorted(name for name in views if name not in told)
            rows = {name: changed.delta for name, changed in told.items()}
            former = {name: changed.former for name, changed in told.items() if changed.former is not None}
            self._append(Record(then.epoch, time(), {}, rows, began=sorted(began), untold=untold, former=former))
        try:
            with _storage(self._disk, "written"):
                fold = self._keep(then, self._prepared, known)
                self._lease.require()
        except BaseException:
            self._withdraw(before, then.epoch)
            raise
        finally:
            # Whether it counts or not, the next record has nothing to do with this one.
            self._log.close()
        with suppress(HeadwaterError, OSError):
            # It tells that there is a manifest; if it cannot begin now, it does with the next record.
            self._begin_segment(then.epoch + 1)
        self._due.set()
        return replace(then, states={step: fold.exchanged(state) for step, state in then.states.items()})

    def changes(self, name: str, after: int, earliest: int) -> list[Changed]:  # noqa: ARG002
        return log.changes(self._disk, name, after, self._manifest.history)

    def _is_full(self, now: Snapshot, share: float) -> bool:
        """Whether the states that are only in memory take more than their share of what is allowed."""
        if self._memory is None:
            return False
        held = sum(run.nbytes for state in now.states.values() for a in state for run in a.runs if run.file is None)
        return held > share * self._memory

    def _append(self, record: Record) -> None:
        with _storage(self._disk, "written"):
            try:
                if not self._log.fits(record.epoch):
                    self._begin_segment(record.epoch)
                self._log.append(record)
                if self._durability == "sync" or record.began is not None:
                    self._log.sync()
                self._lease.require()
            except DirectoryInUse:
                # Whether it counts is for those to say who have taken over.
                self._log.close()
                raise
            except BaseException:
                with suppress(OSError, HeadwaterError), self._lease.kept():
                    self._log.take_back()
                self._log.close()
                raise

    def _begin_segment(self, first: int) -> None:
        """What was written of these epochs before is void, which is not for those to say who have lost the lease."""
        with self._lease.kept():
            self._log.begin(first)

    def _require_open(self) -> None:
        self._owner.require()
        if self.is_closed:
            raise SessionClosed("the session is closed; connect again")

    def _require_safe(self) -> None:
        self._require_open()
        if self._is_ending:
            raise SessionClosed("the session is being closed; connect again")
        if self._epochs is not None and self._epochs.now.epoch < self._manifest.epoch:
            raise StorageFailed(
                f"this session was interrupted when it had written epoch {self._manifest.epoch} to {self._disk.place!r}, "
                "and does not know of it; connect again"
            )
        error = self._log.failed if self._durability == "async" and self._unsafe is None else self._unsafe
        if error is not None:
            raise StorageFailed(
                f"{self._disk.place!r} could not be written some time ago ({error}), and epochs after that may be lost; "
                "connect again"
            )

    def make_certain(self) -> None:
        """All epochs that there are outlive the process, and the machine, from here on, whatever the durability is."""
        self._require_safe()
        with _storage(self._disk, "written"):
            if self._durability == "memory" or self._inherited:
                self.fold()
                self._inherited = False
            elif self._durability == "async":
                self._log.sync()

    # -- jobs on executors

    @property
    def disk(self) -> Disk:
        return self._disk

    def reserve(self) -> str:
        """The name of a file that a job may write, and the beginning of names of others, none of which is removed."""
        name = self._new_file()
        with self._reserving:
            self._reserved += (name.removesuffix(".arrow"),)
        self._unsettled = True
        return name

    def hold(self, names: Collection[str]) -> None:
        """Files that are not removed, whether they are needed or not, until they are released as often as they are held."""
        with self._reserving:
            self._reserved += tuple(name.removesuffix(".arrow") for name in names)

    def release(self, names: Collection[str]) -> None:
        """What a job has written under these names is in the present snapshot by now, or can be removed."""
        with self._reserving:
            reserved = Counter(self._reserved)
            reserved.subtract(name.removesuffix(".arrow") for name in names)
            self._reserved = tuple(reserved.elements())

    # -- the end

    @property
    def is_closed(self) -> bool:
        return self._over.is_set()

    def close(self) -> None:
        """Folds what is left, and lets the next writer in. An epoch of another thread is part of that, or is refused.

        If the disk fails, and there are epochs that nothing but this process has, it raises and stays open.
        """
        self._owner.require()
        if self.is_closed:
            return
        lost = None if self._epochs is None else self._last_fold(self._epochs)
        self.abandon()
        if lost is not None:
            raise lost

    def abandon(self) -> None:
        """Lets the next writer in, and leaves everything as it is: the only end of a store that could not be opened."""
        self._stop_threads()
        self._log.close()
        self._lease.release()
        compaction.limit_memory(None)

    def _stop_threads(self) -> None:
        self._over.set()
        self._due.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _last_fold(self, epochs: Epochs) -> DirectoryInUse | None:
        """Folds while nobody commits; the error if epochs are lost because someone else has taken over."""
        with self._folding:
            with epochs.writing:
                self._is_ending = True
            try:
                self.fold()
            except DirectoryInUse:
                # What is in the log was read by whoever has taken over.
                if lost := self._only_in_memory(epochs):
                    return DirectoryInUse(f"this session has lost the directory {self._disk.place!r}, and {lost} with it")
            except (HeadwaterError, OSError) as error:
                if lacking := self._only_in_memory(epochs):
                    self._is_ending = False
                    raise StorageFailed(
                        f"{self._disk.place!r} could not be written: {error.__cause__ or error}. Only this process has "
                        f"{lacking}, so the session stays open: mend the disk, and close it again"
                    ) from error
                _log.warning("The directory could not be folded at the end; its log has everything", exc_info=error)
            except BaseException:
                self._is_ending = False
                raise
        return None

    def _only_in_memory(self, epochs: Epochs) -> str:
        """The epochs that are in no file for certain, in words; empty if there are none."""
        if self._durability == "async" and self._log.failed is None:
            with suppress(OSError):
                self._log.sync()
        first, last = self._manifest.epoch + 1, epochs.now.epoch
        if first > last or self._durability == "sync" or (self._durability == "async" and self._log.failed is None):
            return ""
        return f"epoch {last}" if first == last else f"the epochs {first} to {last}"

    # -- folding

    def fold(self) -> None:
        """Brings all that is only in memory into files, beside the commits."""
        assert self._epochs is not None
        self._require_open()
        with self._folding, _storage(self._disk, "written"):
            self._lease.require()
            with self._epochs.writing:
                now = self._epochs.now
                if self._log.bytes:
                    self._begin_segment(now.epoch + 1)
                self._seconds = 0.0
            while now.epoch > self._manifest.epoch:
                assert self._manifest.catalog is not None
                try:
                    self._epochs.exchange(self._keep(now, self._manifest.catalog, self._manifest.began).exchanged)
                except DamagedFile as damage:
                    _log.warning("%s", self._epochs.set_aside(damage))
                    now = now.without(damage)
            self._collect()

    def _keep(self, now: Snapshot, catalog: str, began: Mapping[str, int]) -> Fold:
        """Writes what is not in files yet, and then the manifest, with which it all counts."""
        fold = Fold(self._disk, self._new_file, self._sparse())
        fold.write(now.states.values())
        if fold.bytes or (self._unsettled and self._disk.files(manifest.RUNS)):
            self._unsettled = False
            self._disk.settle(manifest.RUNS)
        states = map(now.states.get, now.catalog.steps)
        kept = tuple(None if state is None else fold.kept(state) for state in states)
        history = now.epoch if self._durability == "memory" else self._manifest.history
        made = Manifest(self._lease.fence, now.epoch, time(), catalog, kept, began, history, now.positions)
        self._lease.require()
        manifest.write(self._disk, made)
        self._manifest = made
        return fold

    def _withdraw(self, before: Manifest, epoch: int) -> None:
        """Takes back the manifest of an epoch that does not come to be, unless someone else has taken over, and decides."""
        self._manifest = before
        try:
            with self._lease.kept():
                self._disk.remove(manifest.name_of(self._lease.fence, epoch))
                self._disk.settle(manifest.FOLDER)
        except DirectoryInUse:
            pass
        except OSError as error:
            self._unsafe = error

    def _sparse(self) -> set[str]:
        """Files of which little is in use any more."""
        used = self._manifest.files()
        return {file for file, count in used.items() if count < _SPARSE * (self._disk.size(file) or 0)}

    def _collect(self) -> None:
        """Removes files that nothing needs any more; whoever still reads one has it open.

        First other manifests go, for certain: whatever happens then, none is left that needs what goes next.
        """
        self._lease.require()
        others = self._disk.files(manifest.FOLDER)
        if self._manifest.catalog is not None:
            if self._manifest.name not in others:
                raise DamagedFile(self._manifest.name, "it is missing")
            others.remove(self._manifest.name)
        if others:
            self._remove_own(others)
            self._disk.settle(manifest.FOLDER)
        needed = {*self._manifest.files(), self._manifest.catalog}
        for folder in (manifest.RUNS, manifest.CATALOGS):
            found = self._disk.files(folder)
            # In this order: what is not reserved any more is in the present snapshot, if it counts.
            reserved = self._reserved
            used = needed | self._in_use()
            self._remove_own(name for name in found if name not in used and not name.startswith(reserved))
        for segment in self._outdated():
            self._disk.remove(segment.name)

    def _remove_own(self, names: Iterable[str]) -> None:
        """Removes files of this session and earlier ones; those of a later one, and of anybody else, stay."""
        for name in names:
            fence = _fence(name)
            if fence is not None and fence <= self._lease.fence:
                self._disk.remove(name)

    def _in_use(self) -> set[str | None]:
        """The files of the present snapshot, some of which jobs have written since the last manifest."""
        assert self._epochs is not None
        return {run.file for state in self._epochs.now.states.values() for kept in state for run in kept.runs}

    def _outdated(self) -> Iterator[log.Segment]:
        """The segments of the log that no one asks for any more: void ones, and the oldest ones, so that no gap is left."""
        oldest = 0 if self._retention.epochs is None else self._manifest.epoch - self._retention.epochs
        since = 0.0 if self._retention.seconds is None else time() - self._retention.seconds
        is_kept = False
        for segment, end in log.with_ends(log.segments(self._disk)):
            if end is not None and end <= segment.first:
                yield segment
                continue
            by_count = self._retention.epochs is not None and end is not None and end <= oldest
            by_age = self._retention.seconds is not None and self._disk.touched(segment.name) < since
            is_needed = end is None or end > self._manifest.epoch + 1
            is_kept = is_kept or is_needed or not (by_count or by_age or self._durability == "memory")
            if not is_kept:
                yield segment

    def _new_file(self) -> str:
        return f"{manifest.RUNS}/{self._lease.fence:08}-{next(self._numbers):08}.arrow"

    # -- threads

    def _fold_when_due(self) -> None:
        while not self._over.is_set():
            self._due.wait()
            self._due.clear()
            if self._over.is_set():
                return
            try:
                self.fold()
            except Exception as error:  # noqa: BLE001  (whatever it is, the log has it all, and the next fold tries again)
                _log.warning("The directory could not be folded and will be later", exc_info=error)

    def _sync_at_times(self) -> None:
        assert self._epochs is not None
        while not self._over.wait(LAG / 2):
            with suppress(OSError):
                self._log.sync()


@contextmanager
def _storage(disk: Disk, done: str) -> Iterator[None]:
    """What the disk refuses, as an error of ours."""
    try:
        yield
    except OSError as error:
        raise StorageFailed(f"{disk.place!r} could not be {done}: {error.strerror or error}; nothing was changed") from error


def _mark(disk: Disk) -> None:
    """Makes a new directory ours, unless someone else just did."""
    with disk.undisturbed():
        if not manifest.is_marked(disk):
            manifest.mark(disk)


def _highest_fence(disk: Disk) -> int:
    """Of all who have written here: a copy of a directory comes without its lease."""
    names = (name for folder in (*manifest.FOLDERS, log.FOLDER) for name in disk.files(folder))
    return max((_fence(name) or 0 for name in names), default=0)


def _fence(name: str) -> int | None:
    """With which the name of a file begins; None if it is none of the store's."""
    fence = name.rpartition("/")[2].partition("-")[0]
    return int(fence) if fence.isdecimal() else None
