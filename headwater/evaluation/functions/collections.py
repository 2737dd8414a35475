"""Structs, arrays and maps. Spark raises for an element that is not there, where DuckDB gives NULL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.evaluation.functions.rule import (
    Typed,
    Untranslatable,
    constant,
    is_plain,
    is_whole,
    macro,
    quoted,
    require,
    run,
    same_types,
    text,
    translates,
)

if TYPE_CHECKING:
    from headwater.algebra.expressions import Call

    Arguments = tuple[Typed, ...]

macro("hw_item(a, i)", "CASE WHEN i < 0 OR i >= len(a) THEN hw_raise('no such element') ELSE a[i + 1] END")
macro("hw_element(a, i)", "CASE WHEN i = 0 OR abs(CAST(i AS BIGINT)) > len(a) THEN hw_raise('no such element') ELSE a[i] END")
macro(
    "hw_position(a, x)", "CASE WHEN a IS NULL OR x IS NULL THEN NULL ELSE CAST(coalesce(list_position(a, x), 0) AS BIGINT) END"
)
macro("hw_join(a, between)", "CASE WHEN a IS NULL THEN NULL ELSE coalesce(array_to_string(a, between), '') END")
macro(
    "hw_holds(a, x)",
    "CASE WHEN a IS NULL OR x IS NULL THEN NULL WHEN list_contains(a, x) THEN true "
    "WHEN list_count(a) < len(a) THEN NULL ELSE false END",
)


@translates("CreateNamedStruct")
def struct(call: Call, arguments: Arguments) -> Typed:
    names = [constant(call, ordinal) for ordinal in range(0, len(arguments), 2)]
    require(len({name.lower() for name in names}) == len(names) and "" not in names, "a struct with names that DuckDB confuses")
    values = arguments[1::2]
    fields = ", ".join(f"{quoted(name)} := {value.sql}" for name, value in zip(names, values, strict=True))
    return Typed(f"struct_pack({fields})", pa.struct([pa.field(n, v.type) for n, v in zip(names, values, strict=True)]))


@translates("GetStructField")
def field(call: Call, arguments: Arguments) -> Typed:
    (argument,) = arguments
    ordinal = call.option("ordinal")
    if ordinal is None or not pa.types.is_struct(argument.type):
        raise Untranslatable("GetStructField without its ordinal")
    return Typed(f"struct_extract_at({argument.sql}, {int(ordinal) + 1})", argument.type.field(int(ordinal)).type)


@translates("CreateArray")
def array(_call: Call, arguments: Arguments) -> Typed:
    require(bool(arguments), "an array without elements")
    kind = same_types(arguments, "CreateArray")
    return Typed(f"list_value({', '.join(argument.sql for argument in arguments)})", pa.list_(kind))


@translates("GetArrayItem")
def item(call: Call, arguments: Arguments) -> Typed:
    elements = _elements(call, arguments)
    return Typed(run("hw_item", arguments[0].sql, arguments[1].sql), elements)


@translates("ElementAt")
def element_at(call: Call, arguments: Arguments) -> Typed:
    if pa.types.is_map(arguments[0].type):
        return map_value(call, arguments)
    elements = _elements(call, arguments)
    return Typed(run("hw_element", arguments[0].sql, arguments[1].sql), elements)


@translates("GetMapValue")
def map_value(call: Call, arguments: Arguments) -> Typed:
    container, key = arguments
    require(pa.types.is_map(container.type), f"{call.function} of {container.type}")
    require(is_whole(key.type) or key.type == pa.string(), f"a map by {key.type}")
    return Typed(f"{container.sql}[{key.sql}]", container.type.item_type)


@translates("Size")
def size(call: Call, arguments: Arguments) -> Typed:
    (argument,) = arguments
    require(call.option("legacySizeOfNull") == "false", "the size of NULL as −1")
    if pa.types.is_map(argument.type):
        return Typed(f"CAST(cardinality({argument.sql}) AS INTEGER)", pa.int32())
    require(pa.types.is_list(argument.type), f"Size of {argument.type}")
    return Typed(f"CAST(len({argument.sql}) AS INTEGER)", pa.int32())


@translates("ArrayContains")
def contains(call: Call, arguments: Arguments) -> Typed:
    container, value = arguments
    require(pa.types.is_list(container.type), f"{call.function} of {container.type}")
    same_types((Typed("", container.type.value_type), value), call.function)
    require(is_plain(value.type) and not pa.types.is_floating(value.type), f"{call.function} of {value.type}")
    return Typed(run("hw_holds", container.sql, value.sql), pa.bool_())


@translates("Concat")
def concat(_call: Call, arguments: Arguments) -> Typed:
    """Of strings, of bytes or of arrays; NULL if any part is."""
    if not arguments:
        return Typed("''", pa.string())
    kind = same_types(arguments, "Concat")
    require(kind in (pa.string(), pa.binary()) or pa.types.is_list(kind), f"Concat of {kind}")
    return Typed("(" + " || ".join(argument.sql for argument in arguments) + ")", kind)


@translates("ArrayMax", "ArrayMin")
def extreme(call: Call, arguments: Arguments) -> Typed:
    elements = _comparable(call, arguments[0])
    return Typed(f"{call.function.replace('Array', 'list_').lower()}({arguments[0].sql})", elements)


@translates("ArrayPosition")
def position(call: Call, arguments: Arguments) -> Typed:
    same_types((Typed("", _comparable(call, arguments[0])), arguments[1]), call.function)
    return Typed(run("hw_position", arguments[0].sql, arguments[1].sql), pa.int64())


@translates("SortArray")
def sort(call: Call, arguments: Arguments) -> Typed:
    _comparable(call, arguments[0])
    order = {"true": "'ASC', 'NULLS FIRST'", "false": "'DESC', 'NULLS LAST'"}[constant(call, 1)]
    return Typed(f"list_sort({arguments[0].sql}, {order})", arguments[0].type)


@translates("ArrayJoin")
def join(call: Call, arguments: Arguments) -> Typed:
    require(len(arguments) == 2 and arguments[0].type == pa.list_(pa.string()), "ArrayJoin")
    return Typed(run("hw_join", arguments[0].sql, text(constant(call, 1))), pa.string())


@translates("MapKeys", "MapValues")
def halves(call: Call, arguments: Arguments) -> Typed:
    (argument,) = arguments
    require(pa.types.is_map(argument.type), f"{call.function} of {argument.type}")
    if call.function == "MapKeys":
        return Typed(f"map_keys({argument.sql})", pa.list_(argument.type.key_type))
    return Typed(f"map_values({argument.sql})", pa.list_(argument.type.item_type))


def _comparable(call: Call, argument: Typed) -> pa.DataType:
    """The type of the elements, if both engines compare them alike and tell equal ones not apart."""
    if not pa.types.is_list(argument.type):
        raise Untranslatable(f"{call.function} of {argument.type}")
    elements = argument.type.value_type
    require(is_plain(elements) and not pa.types.is_floating(elements), f"{call.function} of {argument.type}")
    return elements


def _elements(call: Call, arguments: Arguments) -> pa.DataType:
    container, ordinal = arguments
    if not pa.types.is_list(container.type) or not is_whole(ordinal.type):
        raise Untranslatable(f"{call.function} of {container.type}")
    return container.type.value_type
