"""The shop: makes up its first rows, and then the changes of its business, the same ones for the same seed.

    customers  ──<  orders  ──<  items  >──  stock

Few customers order much and few products sell well, as in any shop. The shop keeps books of its own (`ledger`), and Spark gets
the tables from these books and not from Headwater, so that the check at the end would also find a row that Headwater lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headwater.demo.ledger import Ledger
from headwater.demo.wares import COUNTRIES, STATUSES, WARES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from headwater.demo.ledger import Numbers

FEWEST_ROWS = 1_000
# Of a hundred rows so many are of these tables; the others are items.
_CUSTOMERS, _STOCK, _ORDERS = 5, 1, 25
_OPENED, _BETWEEN_ORDERS = 1_735_689_600_000_000, 60_000_000
_MOST_OF_ONE, _DELIVERY, _DEAREST = 5, 200, 300
# What happens between two commits.
_ARRIVALS, _MOVES, _FAREWELLS = 3, 3, 1
_SALES, _SOLD, _NEW_STATUSES, _CORRECTIONS, _CANCELLATIONS = 10, 28, 8, 8, 4


@dataclass(frozen=True)
class Changes:
    """One transaction: the rows that go, that replace those of the same key, and that come, by table."""

    deletes: Mapping[str, pa.Table]
    upserts: Mapping[str, pa.Table]
    inserts: Mapping[str, pa.Table]

    def __len__(self) -> int:
        """How many rows go, change or come."""
        return sum(rows.num_rows for kind in (self.deletes, self.upserts, self.inserts) for rows in kind.values())


class Shop:
    """A shop that opens with so many rows."""

    def __init__(self, rows: int, seed: int) -> None:
        if rows < FEWEST_ROWS:
            raise ValueError(f"A shop has at least {FEWEST_ROWS} rows, not {rows}.")
        self._random = np.random.default_rng(seed)
        self._books = {
            "customers": Ledger("country"),
            "stock": Ledger("available", "cents"),
            "orders": Ledger("customer", "status", "placed", "first", "lines"),
            "items": Ledger("order", "line", "product", "quantity", "cents"),
        }
        customers, products, orders = (rows * share // 100 for share in (_CUSTOMERS, _STOCK, _ORDERS))
        self._welcome(customers)
        self._books["stock"].append(available=self._any(_DELIVERY, products), cents=100 * self._any(_DEAREST, products) + 99)
        self._sell(orders, rows - customers - products - orders)

    # -- the books

    def table(self, name: str) -> pa.Table:
        """The rows that a table has to hold now."""
        return self._written(name, self._books[name].present())

    def chunks(self, name: str, size: int) -> Iterator[pa.Table]:
        """The same in pieces of at most so many rows."""
        slots = self._books[name].present()
        for start in range(0, len(slots), size):
            yield self._written(name, slots[start : start + size])

    def count(self, name: str) -> int:
        return len(self._books[name].present())

    def _written(self, name: str, slots: Numbers) -> pa.Table:
        return WARES[name].written(self._books[name], slots)

    # -- business

    def business(self) -> Changes:
        """Customers come, move and leave; orders are placed, changed and cancelled; stock goes down and is filled up again."""
        customers, orders, items = (self._books[name] for name in ("customers", "orders", "items"))
        movers, leavers = self._some(customers, _MOVES, _FAREWELLS)
        revised, corrected, cancelled = self._some(orders, _NEW_STATUSES, _CORRECTIONS, _CANCELLATIONS)
        lines = orders["first"][corrected]

        gone = {"customers": leavers, "orders": cancelled, "items": self._lines(cancelled)}
        deletes = {name: self._written(name, slots) for name, slots in gone.items()}
        for name, slots in gone.items():
            self._books[name].strike(slots)

        restocked = self._move_stock(np.concatenate([lines, gone["items"]]), 1)
        customers["country"][movers] = self._any(len(COUNTRIES), len(movers))
        orders["status"][revised] = self._any(len(STATUSES), len(revised))
        items["quantity"][lines] = 1 + self._any(_MOST_OF_ONE, len(lines))

        arrivals, sales = self._welcome(_ARRIVALS), self._sell(_SALES, _SOLD)
        come = {"customers": arrivals, "orders": sales, "items": self._lines(sales)}
        sold = self._move_stock(np.concatenate([lines, come["items"]]), -1)
        changed = {"customers": movers, "orders": revised, "items": lines, "stock": np.union1d(restocked, sold)}
        upserts = {name: self._written(name, slots) for name, slots in changed.items()}
        return Changes(deletes, upserts, {name: self._written(name, slots) for name, slots in come.items()})

    def _welcome(self, count: int) -> Numbers:
        """New customers, of any country."""
        return self._books["customers"].append(country=self._any(len(COUNTRIES), count))

    def _sell(self, count: int, lines: int) -> Numbers:
        """New orders, with so many lines in all and at least one each."""
        orders, items, stock = (self._books[name] for name in ("orders", "items", "stock"))
        each = 1 + np.bincount(self._any(count, lines - count), minlength=count)
        start = np.cumsum(each) - each
        placed = orders.append(
            customer=self._favourites(self._books["customers"].present(), count),
            status=self._any(len(STATUSES), count),
            placed=_OPENED + _BETWEEN_ORDERS * (len(orders) + np.arange(count)) + self._any(_BETWEEN_ORDERS, count),
            first=len(items) + start,
            lines=each,
        )
        product = self._favourites(stock.present(), lines)
        items.append(
            order=np.repeat(placed, each),
            line=1 + np.arange(lines) - np.repeat(start, each),
            product=product,
            quantity=1 + self._any(_MOST_OF_ONE, lines),
            cents=stock["cents"][product],
        )
        return placed

    def _lines(self, orders: Numbers) -> Numbers:
        """The slots of the items of orders, which stand side by side."""
        first, each = self._books["orders"]["first"][orders], self._books["orders"]["lines"][orders]
        start = np.cumsum(each) - each
        return np.repeat(first - start, each) + np.arange(each.sum())

    def _move_stock(self, items: Numbers, sign: int) -> Numbers:
        """Puts what was ordered back or takes it out, orders a delivery of what has run out, and says which products it was."""
        available, sold = self._books["stock"]["available"], self._books["items"]
        product = sold["product"][items]
        np.add.at(available, product, sign * sold["quantity"][items])
        available[product[available[product] < 0]] += _DELIVERY
        return np.unique(product)

    # -- chance

    def _any(self, bound: int, count: int) -> Numbers:
        return self._random.integers(bound, size=count)

    def _favourites(self, among: Numbers, count: int) -> Numbers:
        """Some of these, and the first ones most often."""
        return among[(len(among) * self._random.random(count) ** 2).astype(np.int64)]

    def _some(self, ledger: Ledger, *counts: int) -> list[Numbers]:
        """So many rows that are there, all different, for each purpose."""
        chosen = self._random.choice(ledger.present(), sum(counts), replace=False)
        return np.split(chosen, np.cumsum(counts)[:-1])
