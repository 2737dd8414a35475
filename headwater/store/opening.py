"""Opening a directory: from what is written there to a session that goes on with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.durations import microseconds
from headwater.errors import InvalidOption, StorageFailed, UnknownFormat, UnreadableCatalog
from headwater.runtime.epochs import Epochs
from headwater.runtime.history import History
from headwater.store import manifest
from headwater.store.catalogs import FORMAT, decode_catalog, decode_tables, decode_wanted, encode_catalog
from headwater.store.disk import FIRST, MARK, LocalDisk
from headwater.store.reading import Reader, ReadOnlyJournal
from headwater.store.store import DURABILITY, Retention, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from headwater.compiler.dataflow import Step
    from headwater.engine import Engine
    from headwater.runtime.catalog import Catalog
    from headwater.store.catalogs import Wanted
    from headwater.store.disk import Disk
    from headwater.store.store import Decode

    # The engine of the session, made for a time zone.
    Engines = Callable[[str | None], Engine]

# Rows of the latest changes of each table and view that are kept in memory.
_RECENT = 10_000
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)(?:i?[bB])?\s*")


def disk_at(directory: str | Path) -> Disk:
    """The disk for a path, or for the URI of an object store."""
    if isinstance(directory, str) and "://" in directory:
        from headwater.store.objects import ObjectDisk

        return ObjectDisk.at(directory)
    return LocalDisk(Path(directory).expanduser().absolute())


def retention(retain: int | str) -> Retention:
    """How long changes are kept: a number of epochs, or an age such as '7 days'."""
    if isinstance(retain, int) and not isinstance(retain, bool) and retain >= 0:
        return Retention(epochs=retain)
    age = microseconds(retain) if isinstance(retain, str) else None
    if age is None:
        raise InvalidOption(f"retain is a number of epochs, or an age such as '7 days', not {retain!r}")
    return Retention(epochs=None, seconds=age / 1e6)


def budget(memory: int | str | None) -> int | None:
    """A number of bytes, given as that or as '2 GB'."""
    if memory is None or (isinstance(memory, int) and not isinstance(memory, bool) and memory > 0):
        return memory
    match = _SIZE.fullmatch(memory) if isinstance(memory, str) else None
    if match is None:
        raise InvalidOption(f"memory is a number of bytes, or a size such as '2 GB', not {memory!r}")
    return int(float(match[1]) * 1024 ** (" KMGT".index(match[2].upper() or " ")))


def open_to_write(
    disk: Disk, engine: Engines, durability: str, retain: int | str, memory: int | str | None
) -> tuple[Store, Epochs, list[Wanted]]:
    """The one writer's store, its epochs as of the last one that was committed, and the views that are to be made again.

    Each leaves the list before it is made: what is in the list is kept with the catalog, for those who open it next.
    """
    if durability not in DURABILITY:
        raise InvalidOption(f"durability is one of {', '.join(DURABILITY)}, not {durability!r}")
    kept, most = retention(retain), budget(memory)
    if isinstance(disk, LocalDisk):
        _make(disk)
    store = Store(disk, durability, kept, memory=most)
    try:
        wanted: list[Wanted] = []
        now = store.snapshot(_decoder(engine, wanted))
        # The log has what is older: memory is for who follows closely.
        epochs = Epochs(now, History(now.epoch, _RECENT))
        epochs.history.restart(now.epoch, store.began)
        for file in store.missing():
            epochs.set_aside(file)
        for record in store.tail():
            epochs.replay(record.tables, record.positions)
        epochs.journal = store
        store.attach(epochs, lambda catalog: encode_catalog(catalog, engine(None).time_zone, wanted))
    except OSError as error:
        store.abandon()
        raise StorageFailed(f"{disk.place!r} could not be opened: {error.strerror or error}; nothing was changed") from error
    except BaseException:
        store.abandon()
        raise
    return store, epochs, wanted


def open_to_read(disk: Disk, engine: Engines) -> tuple[Reader, Epochs]:
    """One of many readers, and the newest epoch."""
    epochs = Epochs()
    epochs.journal = ReadOnlyJournal(disk)
    try:
        reader = Reader(disk, lambda described: _decoder(engine)(described)[0])
    except OSError as error:
        raise StorageFailed(f"{disk.place!r} cannot be read: {error.strerror or error}") from error
    go_on(reader, epochs, 0)
    return reader, epochs


def go_on(reader: Reader, epochs: Epochs, timeout: float | None) -> None:
    """To the newest epoch; of what was before, the log tells."""
    try:
        then = reader.wait(epochs.now, timeout)
    except OSError as error:
        raise StorageFailed(f"{reader.place!r} cannot be read: {error.strerror or error}") from error
    epochs.history.restart(then.epoch, reader.began)
    epochs.now = then


def decoded_without_spark(described: Any) -> Catalog:  # noqa: ANN401  (as it was stored)
    """A catalog to look at, which no epoch can go on with."""
    from headwater.engine import Engine

    def no_spark() -> SparkSession:
        raise AssertionError("What a directory holds can be told without Spark.")

    return decode_catalog(described, Engine(no_spark, described["time_zone"]))


def _decoder(engine: Engines, wanted: list[Wanted] | None = None) -> Decode:
    """What makes a catalog of its description; views of which the steps are not known any more are added to those wanted."""

    def decode(described: dict[str, Any]) -> tuple[Catalog, Mapping[int, Step]]:
        made = engine(described["time_zone"])
        try:
            catalog = decode_catalog(described, made)
        except UnreadableCatalog:
            if wanted is None or described["format"] > FORMAT:
                raise
            catalog, steps, views = decode_tables(described, made)
            wanted.extend(views)
            return catalog, steps
        if wanted is not None:
            wanted.extend(decode_wanted(described))
        return catalog, dict(enumerate(catalog.steps))

    return decode


def _make(disk: LocalDisk) -> None:
    """The directory, if it is not there yet; one with other things in it is left alone."""
    try:
        if disk.size(MARK) is None:
            disk.make_root()
        # In this order: what others have made meanwhile came after their mark.
        strange = any(entry.name not in FIRST for entry in disk.root.iterdir()) and manifest.identity(disk) is None
    except OSError as error:
        raise StorageFailed(f"{disk.place!r} cannot be used: {error.strerror or error}") from error
    if strange:
        raise UnknownFormat(f"{disk.place!r} is not empty and not a Headwater directory; give the path of a new one")
