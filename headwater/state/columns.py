"""Arrow columns of any size, put together and taken apart.

Arrow's usual strings and lists count their bytes and elements in 32 bits. Where values put together would be more than that,
the result has Arrow's large types instead, and `conform` brings small extracts of it back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence


def take(array: pa.Array, chosen: pa.Array) -> pa.Array:
    """The values at the places chosen."""
    try:
        return array.take(chosen)
    except pa.ArrowInvalid:
        return array.cast(enlarged(array.type)).take(chosen)


def concat(arrays: Sequence[pa.Array]) -> pa.Array:
    """One or more columns end to end."""
    if len(arrays) == 1:
        return arrays[0]
    try:
        return pa.concat_arrays(arrays)
    except pa.ArrowInvalid:
        return pa.concat_arrays([array.cast(enlarged(array.type)) for array in arrays])


def conform(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column in the type, or in its large one if that is needed."""
    if array.type.equals(kind):
        return array
    try:
        return array.cast(kind)
    except pa.ArrowInvalid:
        return array.cast(enlarged(kind))


def alike(a: pa.DataType, b: pa.DataType) -> bool:
    """Whether the types differ in the size of their offsets, their names and nullability at most."""
    return bool(enlarged(a).id == enlarged(b).id)


def enlarged(kind: pa.DataType) -> pa.DataType:
    """The type that holds the same values and counts in 64 bits."""
    if pa.types.is_string(kind) or pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary(kind) or pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.large_list(pa.field(kind.value_field.name, enlarged(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, enlarged(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(enlarged(kind.key_type), enlarged(kind.item_type))
    return kind


def batch(arrays: Sequence[pa.Array]) -> pa.RecordBatch:
    """Columns of one length, one or more, side by side."""
    return pa.RecordBatch.from_arrays(list(arrays), names=[f"c{i}" for i in range(len(arrays))])
