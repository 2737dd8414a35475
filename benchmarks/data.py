"""Tables made by NumPy, and changes to them whose deleted rows are there.

The rows loaded first are deleted in random order, each once; rows that come are new. So a table stays as large as it was, and
its rows at any time are known without asking the engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

    # Gives as many rows, with keys from `first` on.
    Maker = Callable[[np.random.Generator, int, int], pa.Table]

TYPES = {
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.date32(): "DATE",
    pa.decimal128(15, 2): "DECIMAL(15, 2)",
}


def ddl(schema: pa.Schema) -> str:
    """The columns as CREATE TABLE has them."""
    return ", ".join(f"{column.name} {TYPES[column.type]}" for column in schema)


@dataclass
class Changing:
    """A table and the stream of its changes."""

    make: Maker
    base: pa.Table
    rng: np.random.Generator
    order: np.ndarray
    deleted: int = 0
    made: int = 0
    inserted: list[pa.Table] = field(default_factory=list)

    @staticmethod
    def of(make: Maker, rows: int, seed: int = 1) -> Changing:
        rng = np.random.default_rng(seed)
        base = make(rng, 0, rows)
        return Changing(make, base, rng, rng.permutation(rows), made=rows)

    def change(self, size: int) -> tuple[pa.Table, pa.Table]:
        """The rows that go and those that come; half of the size each."""
        half = max(1, size // 2)
        places = self.order[self.deleted : self.deleted + half]
        assert len(places) == half, "all rows of the first load are deleted"
        coming = self.make(self.rng, self.made, half)
        self.deleted += half
        self.made += half
        self.inserted.append(coming)
        return self.base.take(places), coming

    def rows(self) -> pa.Table:
        """The table now."""
        if not self.inserted:
            return self.base
        kept = self.base.take(np.sort(self.order[self.deleted :]))
        return pa.concat_tables([kept, *self.inserted])


def around(rng: np.random.Generator, centre: np.ndarray, width: int) -> np.ndarray:
    """Whole numbers near those given, never below zero."""
    noise = rng.integers(-width, width + 1, len(centre), dtype=np.int32)
    return np.maximum(centre + noise, 0).astype(np.int32)


def facts(groups: int) -> Maker:
    """Twelve columns: a key, an attribute with so many values, nine that follow it in three types, and a text."""
    labels = pa.array([f"label {i}" for i in range(100)])
    width = max(1, groups // 20)

    def make(rng: np.random.Generator, first: int, count: int) -> pa.Table:
        a = rng.integers(0, groups, count, dtype=np.int32)
        columns = {"id": np.arange(first, first + count), "a": a}
        columns |= {name: around(rng, a, width) for name in "bcd"}
        columns |= {name: a + rng.random(count) for name in "ef"}
        columns |= {name: around(rng, a, width).astype(np.int64) for name in "gh"}
        columns |= {name: around(rng, a, width) for name in "ij"}
        text = pa.DictionaryArray.from_arrays(pa.array(a % 100), labels).cast(pa.string())
        return pa.table({**columns, "k": text})

    return make


def partners(rows: int, values: int, times: int) -> pa.Table:
    """A table to join `facts` with: each of so many values comes so often; what is left of the rows meets nothing."""
    meeting = np.repeat(np.arange(values, dtype=np.int32), times)[:rows]
    alone = np.arange(10_000_000, 10_000_000 + rows - len(meeting), dtype=np.int32)
    ttid = np.concatenate([meeting, alone])
    return pa.table({"hid": np.arange(rows), "ttid": ttid, "x": ttid % 1000})
