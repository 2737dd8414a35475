"""Tables of random values under the names of the tables of edge values: numbers of all magnitudes, strings that share parts."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

_CHARACTERS = [
    *"aabbccXxyz %_\\.,/-'\"\n\t09ABÀéßжΣσςİı",
    "\u0301",
    "😀",
    "👨‍👩‍👧",
    "日",
    "ﬁ",
    "\u00a0",
    "ŉ",
    "ǆ",
    "가",
    "\u1100",
]
_NULLS = 0.05
_INTEGERS = (("y", 8), ("h", 16), ("i", 32), ("l", 64))
_DECIMALS = (("a", 10, 2), ("p", 15, 2), ("k", 5, 0), ("s", 18, 6), ("w", 38, 10), ("z", 38, 0), ("u", 7, 7), ("q", 2, 2))


def random_tables(seed: int, count: int) -> dict[str, Callable[[], pa.Table]]:
    """Makers of tables with `count` rows each."""
    made = _Random(random.Random(seed), count)
    names = ("integers", "floats", "whole_floats", "decimals", "strings", "texts", "zoned_texts", "dates", "times")
    return {name: getattr(made, name) for name in names}


@dataclass(frozen=True)
class _Random:
    source: random.Random
    count: int

    def integers(self) -> pa.Table:
        columns = {}
        for name, bits in _INTEGERS:
            for i in (1, 2):
                columns[f"{name}{i}"] = self._column(lambda bits=bits: self._whole(bits), getattr(pa, f"int{bits}")())
        return pa.table(columns)

    def floats(self) -> pa.Table:
        singles = {f"f{i}": self._column(self._float, pa.float32()) for i in (1, 2)}
        return pa.table(singles | {f"d{i}": self._column(self._double, pa.float64()) for i in (1, 2)})

    def whole_floats(self) -> pa.Table:
        large = self._column(lambda: self.source.uniform(-1, 1) * 2.0 ** self.source.randrange(66), pa.float64())
        return pa.table({"d": large, "f": self._column(self._float, pa.float32())})

    def decimals(self) -> pa.Table:
        columns = {}
        for name, precision, scale in _DECIMALS:
            for i in (1, 2):
                made = [self._decimal(precision, scale) for _ in range(self.count)]
                columns[f"{name}{i}"] = pa.array(made, pa.decimal128(precision, scale))
        return pa.table(columns | {"i": self._column(lambda: self._whole(32), pa.int32())})

    def strings(self) -> pa.Table:
        left = [self._string() for _ in range(self.count)]
        right = [self._part(text) for text in left]
        numbers = self._column(lambda: self.source.randrange(-8, 12), pa.int32())
        return pa.table({"s1": pa.array(left), "s2": pa.array(right), "n": numbers})

    def texts(self) -> pa.Table:
        return pa.table({"s": self._column(self._number_or_date, pa.string())})

    def zoned_texts(self) -> pa.Table:
        return pa.table({"s": self._column(self._time, pa.string())})

    def dates(self) -> pa.Table:
        days = {name: self._column(self._day, pa.int32()).cast(pa.date32()) for name in ("d", "e")}
        return pa.table(days | {"n": self._column(lambda: self._whole(16), pa.int32())})

    def times(self) -> pa.Table:
        numbers = [self._column(self._moment, pa.int64()) for _ in range(3)]
        return pa.table(
            {
                "t": numbers[0].cast(pa.timestamp("us", tz="UTC")),
                "u": numbers[1].cast(pa.timestamp("us", tz="UTC")),
                "l": numbers[0].cast(pa.timestamp("us")),
                "m": numbers[1].cast(pa.timestamp("us")),
                "n": numbers[2],
                "v": self._column(lambda: self._whole(55), pa.int64()).cast(pa.duration("us")),
                "d": self._column(self._day, pa.int32()).cast(pa.date32()),
            }
        )

    def _column(self, value: Callable[[], Any], kind: pa.DataType) -> pa.Array:
        return pa.array([None if self.source.random() < _NULLS else value() for _ in range(self.count)], kind)

    def _whole(self, bits: int) -> int:
        size = self.source.randrange(bits)
        return self.source.choice([1, -1]) * (self.source.getrandbits(size) if size else 0)

    def _double(self) -> float:
        any_bits: float = struct.unpack("d", struct.pack("Q", self.source.getrandbits(64)))[0]
        price = self.source.randrange(-(10**6), 10**6) / 100
        return self.source.choice([any_bits, self.source.uniform(-1000, 1000), float(self.source.randrange(-50, 50)), price])

    def _float(self) -> float:
        any_bits: float = struct.unpack("f", struct.pack("I", self.source.getrandbits(32)))[0]
        near: float = struct.unpack("f", struct.pack("f", self.source.uniform(-1000, 1000)))[0]
        return self.source.choice([any_bits, near, float(self.source.randrange(-50, 50))])

    def _decimal(self, precision: int, scale: int) -> Decimal | None:
        if self.source.random() < _NULLS:
            return None
        digits = self.source.randrange(10 ** self.source.randrange(precision + 1))
        return Decimal(f"{self.source.choice(['', '-'])}{digits}E-{scale}")

    def _string(self) -> str | None:
        if self.source.random() < _NULLS:
            return None
        return "".join(self.source.choice(_CHARACTERS) for _ in range(self.source.randrange(9)))

    def _part(self, text: str | None) -> str | None:
        if not text or self.source.random() < 0.4:
            return self._string()
        start = self.source.randrange(len(text))
        return text[start : start + self.source.randrange(4)]

    def _number_or_date(self) -> str:
        pick = self.source.randrange
        whole = str(self._whole(self.source.choice([8, 16, 32, 64, 70])))
        fixed = f"{self._whole(40)}.{pick(10 ** pick(1, 12))}"
        date = f"{pick(10000):04d}-{pick(14)}-{pick(33):02d}"
        noise = "".join(self.source.choice("0123456789+-.eE xXdDfFlL_nNaAiIyY") for _ in range(pick(1, 6)))
        return self.source.choice([whole, fixed, repr(self._double()), date, noise])

    def _time(self) -> str:
        pick = self.source.randrange
        fraction = self.source.choice(["", f".{pick(10 ** pick(1, 7))}"])
        day = f"{pick(1, 9999):04d}-{pick(1, 13):02d}-{pick(1, 29):02d}"
        return f"{day}{self.source.choice(' T')}{pick(25):02d}:{pick(60):02d}:{pick(60):02d}{fraction}"

    def _day(self) -> int:
        reach = self.source.choice([20_000, 700_000, 2**28])
        return self.source.randrange(-reach, reach)

    def _moment(self) -> int:
        lowest, highest = self.source.choice([(-3 * 10**15, 4 * 10**15), (-62_135_596_800 * 10**6, 253_402_300_800 * 10**6)])
        return self.source.randrange(lowest, highest)
