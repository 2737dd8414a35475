r"""Texts of PostgreSQL as values of a table's types.

Numbers, dates and times are read by Arrow. What PostgreSQL writes in its own way is read here: t, `\x00ff`, `{1,NULL,"a b"}`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def readable(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The texts in a form that Arrow casts to the type, or in the type itself."""
    if pa.types.is_boolean(kind):
        return pc.if_else(pc.equal(column, "t"), "true", pc.if_else(pc.equal(column, "f"), "false", column))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array([None if text is None else bytes.fromhex(text[2:]) for text in column.to_pylist()], kind)
    if pa.types.is_list(kind):
        return pa.array([None if text is None else array(text) for text in column.to_pylist()], pa.list_(pa.string()))
    return column


def array(text: str) -> list[Any]:
    """The texts in an array of one dimension."""
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
