"""Rows with what each of them follows from: the same row may come several times, once for every way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.delta import beside
from headwater.picking import picked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Annotated:
    """Rows, and for each the number of a vertex of the derivations."""

    rows: pa.RecordBatch
    why: NDArray[np.int64]

    def __len__(self) -> int:
        return self.rows.num_rows

    def take(self, indices: NDArray[np.int64]) -> Annotated:
        return Annotated(beside(picked(self.rows.columns, indices), len(indices)), self.why[indices])

    @staticmethod
    def concat(parts: Sequence[Annotated]) -> Annotated:
        return Annotated(pa.concat_batches([part.rows for part in parts]), np.concatenate([part.why for part in parts]))
