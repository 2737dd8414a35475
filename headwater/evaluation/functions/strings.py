"""Strings. Both engines count code points. What depends on letters' cases or on combined characters is done for ASCII and raises else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.evaluation.functions.rule import (
    Typed,
    Untranslatable,
    cast,
    constant,
    macro,
    option,
    require,
    text,
    translates,
)

if TYPE_CHECKING:
    from headwater.algebra.expressions import Call

    Arguments = tuple[Typed, ...]

_STRING = pa.string()
_SIDES = {"StringTrim": "trim", "StringTrimLeft": "ltrim", "StringTrimRight": "rtrim"}
_LARGEST = 2**31 - 1
_ESCAPE = "\\"

macro("hw_ascii(s)", "CASE WHEN strlen(s) <> length(s) THEN hw_raise('not ASCII') ELSE s END")
macro("hw_from(s, position)", "CASE WHEN position > 0 THEN position - 1 WHEN position < 0 THEN length(s) + position ELSE 0 END")
# The characters from start (which may lie before the string) to before start + count.
macro("hw_slice(s, start, count)", "substring(s, greatest(start, 0) + 1, greatest(start + count - greatest(start, 0), 0))")
macro("hw_pad_to(s, size)", "CASE WHEN size > 1000000 THEN hw_raise('a long string') ELSE greatest(size, 0) END")


@translates("Upper", "Lower")
def letters(call: Call, arguments: Arguments) -> Typed:
    _strings(call, arguments)
    return Typed(f"{call.function.lower()}(hw_ascii({arguments[0].sql}))", _STRING)


@translates("Reverse")
def reverse(call: Call, arguments: Arguments) -> Typed:
    _strings(call, arguments)
    return Typed(f"reverse(hw_ascii({arguments[0].sql}))", _STRING)


@translates("Length")
def length(_call: Call, arguments: Arguments) -> Typed:
    (argument,) = arguments
    if argument.type == pa.binary():
        return Typed(f"CAST(octet_length({argument.sql}) AS INTEGER)", pa.int32())
    require(argument.type == _STRING, f"Length of {argument.type}")
    return Typed(f"CAST(length({argument.sql}) AS INTEGER)", pa.int32())


@translates("OctetLength")
def octets(_call: Call, arguments: Arguments) -> Typed:
    (argument,) = arguments
    require(argument.type in (_STRING, pa.binary()), f"OctetLength of {argument.type}")
    function = "strlen" if argument.type == _STRING else "octet_length"
    return Typed(f"CAST({function}({argument.sql}) AS INTEGER)", pa.int32())


@translates("Substring")
def substring(call: Call, arguments: Arguments) -> Typed:
    string, position, count = arguments
    _strings(call, (string,))
    wide = [f"CAST({argument.sql} AS BIGINT)" for argument in (position, count)]
    return Typed(f"hw_slice({string.sql}, hw_from({string.sql}, {wide[0]}), {wide[1]})", _STRING)


@translates("ConcatWs")
def join(call: Call, arguments: Arguments) -> Typed:
    _strings(call, arguments)
    if len(arguments) == 1:
        return Typed(f"CASE WHEN {arguments[0].sql} IS NULL THEN NULL ELSE '' END", _STRING)
    return Typed(f"concat_ws({', '.join(argument.sql for argument in arguments)})", _STRING)


@translates(*_SIDES)
def trim(call: Call, arguments: Arguments) -> Typed:
    _strings(call, arguments)
    characters = arguments[1].sql if len(arguments) > 1 else "' '"
    return Typed(f"{_SIDES[call.function]}({arguments[0].sql}, {characters})", _STRING)


@translates("StartsWith", "EndsWith", "Contains")
def part_of(call: Call, arguments: Arguments) -> Typed:
    _strings(call, arguments)
    function = {"StartsWith": "starts_with", "EndsWith": "ends_with", "Contains": "contains"}[call.function]
    return Typed(f"{function}({arguments[0].sql}, {arguments[1].sql})", pa.bool_())


@translates("Like")
def like(call: Call, arguments: Arguments) -> Typed:
    """A pattern in which the escape character stands before anything but `_`, `%` or itself is an error in Spark."""
    _strings(call, arguments)
    pattern = constant(call, 1)
    escape = option(call, "escapeChar")
    if escape is None or len(escape) != 1:
        raise Untranslatable("LIKE with an unknown escape character")
    if not re.fullmatch(rf"(?:[^{re.escape(escape)}]|{re.escape(escape)}[_%{re.escape(escape)}])*", pattern, re.DOTALL):
        raise Untranslatable("LIKE with an escape character where none may be")
    return Typed(f"({arguments[0].sql} LIKE {text(pattern)} ESCAPE {text(escape)})", pa.bool_())


@translates("StringReplace")
def replace(call: Call, arguments: Arguments) -> Typed:
    _strings(call, arguments)
    return Typed(f"replace({', '.join(argument.sql for argument in arguments)})", _STRING)


@translates("StringTranslate")
def translate_characters(call: Call, arguments: Arguments) -> Typed:
    _strings(call, arguments)
    return Typed(f"translate({', '.join(argument.sql for argument in arguments)})", _STRING)


@translates("StringLPad", "StringRPad")
def pad(call: Call, arguments: Arguments) -> Typed:
    string, size, filling = arguments
    _strings(call, (string, filling))
    function = {"StringLPad": "lpad", "StringRPad": "rpad"}[call.function]
    count = cast(f"hw_pad_to({string.sql}, {size.sql})", pa.int32())
    return Typed(f"{function}({string.sql}, {count}, {filling.sql})", _STRING)


@translates("StringInstr")
def position(call: Call, arguments: Arguments) -> Typed:
    _strings(call, arguments)
    return Typed(f"CAST(strpos({arguments[0].sql}, {arguments[1].sql}) AS INTEGER)", pa.int32())


@translates("StringRepeat")
def repeat(call: Call, arguments: Arguments) -> Typed:
    string, times = arguments
    _strings(call, (string,))
    return Typed(f"repeat({string.sql}, hw_pad_to({string.sql}, {times.sql}))", _STRING)


@translates("StringSpace")
def spaces(_call: Call, arguments: Arguments) -> Typed:
    return Typed(f"repeat(' ', hw_pad_to('', {arguments[0].sql}))", _STRING)


@translates("Ascii")
def first_code(call: Call, arguments: Arguments) -> Typed:
    _strings(call, arguments)
    return Typed(f"CASE WHEN {arguments[0].sql} = '' THEN 0 ELSE ascii({arguments[0].sql}) END", pa.int32())


@translates("Md5")
def md5(_call: Call, arguments: Arguments) -> Typed:
    require(arguments[0].type == pa.binary(), "Md5")
    return Typed(f"md5({arguments[0].sql})", _STRING)


def _strings(call: Call, arguments: Arguments) -> None:
    if any(argument.type != _STRING for argument in arguments):
        raise Untranslatable(f"{call.function} of {', '.join(str(argument.type) for argument in arguments)}")
