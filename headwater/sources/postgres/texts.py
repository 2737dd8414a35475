r"""Texts of PostgreSQL as values of a table's types.

Numbers, dates and times are read by Arrow. What PostgreSQL writes in its own way is read here: t, `\x00ff`, `{1,NULL,"a b"}`.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.conversion import Unfit, from_parts

_ELEMENT = r'(?:"(?:[^"\\]|\\.)*+"|[^{}",\\]++)'
_ARRAY = re.compile(rf"\{{(?:{_ELEMENT}(?:,{_ELEMENT})*+)?\}}", re.DOTALL)


def read(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values that the texts tell; raises one of `rows.UNFIT`. What is of the type already stays as it is."""
    if column.type.equals(kind):
        return column
    if pa.types.is_boolean(kind):
        column = pc.if_else(pc.equal(column, "t"), "true", pc.if_else(pc.equal(column, "f"), "false", column))
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array([None if text is None else _bytes(text) for text in column.to_pylist()], kind)
    elif pa.types.is_list(kind):
        found = pa.array([None if text is None else array(text) for text in column.to_pylist()], pa.list_(pa.string()))
        return from_parts(found.offsets, [read(found.values, kind.value_type)], kind, found.is_null())
    values = column.cast(kind)
    if pa.types.is_floating(kind):
        _require_range(column, values)
    return values


def _bytes(text: str) -> bytes:
    if not text.startswith("\\x"):
        raise Unfit(f"{text!r} is not written as bytes are")
    return bytes.fromhex(text[2:])


def _require_range(column: pa.Array, values: pa.Array) -> None:
    """Refuses what Arrow took for infinite, or for 0, because it is too large or too small for the type."""
    endless = pc.and_not(pc.is_inf(values), pc.match_substring(column, "inf", ignore_case=True))
    vanished = pc.and_(pc.equal(values, 0.0), pc.match_substring_regex(column, "^[^eE]*[1-9]"))
    outside = pc.fill_null(pc.or_(endless, vanished), fill_value=False)
    at = pc.index(outside, value=True).as_py()
    if at >= 0:
        raise Unfit(f"{column[at].as_py()!r} is out of the range of a {values.type}")


def array(text: str) -> list[Any]:
    """The texts in an array of one dimension."""
    if not _ARRAY.fullmatch(text):
        raise Unfit(f"{text!r} is no array of one dimension that begins at 1")
    found: list[Any] = []
    at, end = 1, len(text) - 1
    while at < end:
        if text[at] == '"':
            at += 1
            parts = []
            while text[at] != '"':
                at += text[at] == "\\"
                parts.append(text[at])
                at += 1
            found.append("".join(parts))
            at += 1
        else:
            stop = text.find(",", at, end)
            stop = end if stop < 0 else stop
            found.append(None if text[at:stop] == "NULL" else text[at:stop])
            at = stop
        at += 1
    return found
