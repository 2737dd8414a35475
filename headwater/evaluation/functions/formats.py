"""Dates and times as text by a pattern, and back: for patterns made of the common letters in their usual widths."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.evaluation.functions.rule import (
    INSTANT,
    LOCAL,
    Typed,
    Untranslatable,
    constant,
    macro,
    require,
    run,
    text,
    translates,
)
from headwater.evaluation.functions.timestamps import instant, local, micros

if TYPE_CHECKING:
    from headwater.algebra.expressions import Call

    Arguments = tuple[Typed, ...]

_PARTS = re.compile(r"([A-Za-z])\1*|[^A-Za-z]+")
_WRITTEN = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "SSS": "%g", "SSSSSS": "%f"}
_WRITTEN |= {"MMM": "%b", "MMMM": "%B", "E": "%a", "EEE": "%a", "EEEE": "%A", "hh": "%I", "a": "%p"}
_READ = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_SEPARATORS = re.compile(r"[ ,./:_-]+")

# In older years the calendar depends on Spark's policy for patterns, and in later ones the width of a year.
macro("hw_modern(t)", "CASE WHEN year(t) NOT BETWEEN 1900 AND 9999 THEN hw_raise('a far year') ELSE t END")


@translates("DateFormatClass")
def date_format(call: Call, arguments: Arguments) -> Typed:
    return Typed(_formatted(local(arguments[0], call), constant(call, 1)), pa.string())


@translates("FromUnixTime")
def from_unix_time(call: Call, arguments: Arguments) -> Typed:
    require(arguments[0].type == pa.int64(), "FromUnixTime")
    moment = Typed(f"make_timestamptz({arguments[0].sql} * 1000000)", INSTANT)
    return Typed(_formatted(local(moment, call), constant(call, 1)), pa.string())


@translates("UnixTimestamp", "ToUnixTimestamp")
def unix_timestamp(call: Call, arguments: Arguments) -> Typed:
    """Seconds, cut off towards 1970; the pattern matters for texts only."""
    require(arguments[0].type == INSTANT, f"{call.function} of {arguments[0].type}")
    return Typed(f"({micros(arguments[0])} // 1000000)", pa.int64())


@translates("GetTimestamp")
def parse(call: Call, arguments: Arguments) -> Typed:
    """A text that must have exactly the digits of the pattern; else Spark's parser decides."""
    require(arguments[0].type == pa.string() and call.type in (INSTANT, LOCAL), "GetTimestamp")
    parts = _parts(constant(call, 1))
    read_parts = [part for part in parts if part in _READ]
    require({"yyyy", "MM", "dd"} <= set(parts) and len(set(read_parts)) == len(read_parts), "GetTimestamp without a day")
    pattern = "".join(f"[0-9]{{{len(part)}}}" if part in _READ else re.escape(part) for part in parts)
    read = "".join(_letters(part, _READ) for part in parts)
    time = run("hw_modern", f"strptime({run('hw_text', arguments[0].sql, text(pattern))}, {text(read)})")
    return Typed(instant(time, call) if call.type == INSTANT else time, call.type)


def _formatted(time: str, pattern: str) -> str:
    written = "".join(_letters(part, _WRITTEN) for part in _parts(pattern))
    return f"strftime({run('hw_modern', time)}, {text(written)})"


def _parts(pattern: str) -> list[str]:
    return [found[0] for found in _PARTS.finditer(pattern)]


def _letters(part: str, known: dict[str, str]) -> str:
    if part in known:
        return known[part]
    if not _SEPARATORS.fullmatch(part):
        raise Untranslatable(f"{part} in a pattern of times")
    return part
