"""The shop's tables: their columns and keys, the words their names are made of, and how rows of a ledger become Arrow rows.

The number of a customer, order or product is its slot, and its name is a function of that: ledgers keep only what varies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headwater.demo.ledger import Ledger, Numbers

COUNTRIES = ("Austria", "Belgium", "Denmark", "Finland", "France", "Germany", "Ireland", "Italy", "Norway", "Poland", "Spain")
STATUSES = ("placed", "shipped", "delivered", "returned")
CATEGORIES = ("kitchen", "garden", "office", "bedroom", "travel", "sport")
_FIRST = ("Ada", "Ben", "Chloe", "Dov", "Elif", "Finn", "Greta", "Hugo", "Ines", "Jonas", "Kaja", "Luca", "Mira", "Nils", "Pia")
_LAST = ("Adler", "Berg", "Costa", "Dahl", "Eriksen", "Fischer", "Garcia", "Horvat", "Ivanov", "Jansen", "Kowalski", "Lind")
_MATERIALS = ("Ash", "Beech", "Brass", "Cotton", "Glass", "Linen", "Oak", "Steel", "Stone", "Walnut", "Wool")
# In the order of the categories, so that every thing is in the right one.
_THINGS = (
    *("Kettle", "Trowel", "Lamp", "Quilt", "Trunk", "Racket"),
    *("Bowl", "Bench", "Desk", "Pillow", "Flask", "Mat"),
    *("Tray", "Planter", "Shelf", "Mirror", "Case", "Bell"),
)


@dataclass(frozen=True)
class Ware:
    """One table: its columns as in CREATE TABLE, its key, and how the given slots of its ledger are written as rows."""

    columns: str
    key: tuple[str, ...]
    written: Callable[[Ledger, Numbers], pa.Table]


def _customers(ledger: Ledger, slots: Numbers) -> pa.Table:
    name = _joined(_words(_FIRST, slots), _words(_LAST, slots // len(_FIRST)))
    return pa.table({"id": slots, "name": name, "country": _words(COUNTRIES, ledger["country"][slots])})


def _orders(ledger: Ledger, slots: Numbers) -> pa.Table:
    return pa.table(
        {
            "id": slots,
            "customer_id": ledger["customer"][slots],
            "status": _words(STATUSES, ledger["status"][slots]),
            "placed": pa.array(ledger["placed"][slots]).view(pa.timestamp("us", tz="UTC")),
        }
    )


def _items(ledger: Ledger, slots: Numbers) -> pa.Table:
    return pa.table(
        {
            "order_id": ledger["order"][slots],
            "line": ledger["line"][slots].astype(np.int32),
            "product_id": ledger["product"][slots],
            "quantity": ledger["quantity"][slots].astype(np.int32),
            "price": _money(ledger["cents"][slots]),
        }
    )


def _stock(ledger: Ledger, slots: Numbers) -> pa.Table:
    model = pa.array(slots // (len(_MATERIALS) * len(_THINGS)) + 1).cast(pa.string())
    name = _joined(_words(_MATERIALS, slots), _words(_THINGS, slots), model)
    available = ledger["available"][slots].astype(np.int32)
    return pa.table({"product_id": slots, "name": name, "category": _words(CATEGORIES, slots), "available": available})


def _words(words: Sequence[str], numbers: Numbers) -> pa.Array:
    return pa.array(words).take(pa.array(numbers % len(words)))


def _joined(*words: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*words, " ")


def _money(cents: Numbers) -> pa.Array:
    """Decimals with two places: of their 128 bits, the lower half is the cents and the upper one the sign."""
    halves = np.stack([cents, cents >> 63], axis=1)
    return pa.Array.from_buffers(pa.decimal128(10, 2), len(cents), [None, pa.py_buffer(halves)])


WARES = {
    "customers": Ware("id BIGINT, name STRING, country STRING", ("id",), _customers),
    "stock": Ware("product_id BIGINT, name STRING, category STRING, available INT", ("product_id",), _stock),
    "orders": Ware("id BIGINT, customer_id BIGINT, status STRING, placed TIMESTAMP", ("id",), _orders),
    "items": Ware(
        "order_id BIGINT, line INT, product_id BIGINT, quantity INT, price DECIMAL(10, 2)", ("order_id", "line"), _items
    ),
}
