"""Strings. Both engines count code points. Case is changed where letters have one simple counterpart, order only in ASCII."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.algebra.expressions import Literal
from headwater.evaluation.functions.rule import (
    Typed,
    Untranslatable,
    cast,
    constant,
    macro,
    option,
    require,
    run,
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

# Letters whose upper and lower case is one letter, wherever in a word they stand: Latin without ß and the like, Greek without
# sigma, Cyrillic; and signs that have no case.
_LETTERS = (
    r"[\x00-\x{DE}\x{E0}-\x{12F}\x{132}-\x{148}\x{14A}-\x{19A}\x{19C}-\x{1EF}\x{1F1}-\x{24F}\x{391}-\x{3A2}\x{3A4}-\x{3AF}"
    r"\x{3B1}-\x{3C1}\x{3C4}-\x{3CE}\x{400}-\x{52F}\x{2000}-\x{206F}\x{20A0}-\x{20BF}\x{3000}-\x{9FFF}\x{AC00}-\x{D7A3}"
    r"\x{1F300}-\x{1FAFF}]*"
)
macro(
    "hw_simple(s)",
    f"CASE WHEN strlen(s) = length(s) OR s IS NULL THEN s WHEN regexp_full_match(s, '{_LETTERS}', 's') THEN s "
    "ELSE hw_raise('letters without a simple case') END",
)
macro("hw_ascii(s)", "CASE WHEN strlen(s) <> length(s) THEN hw_raise('not ASCII') ELSE s END")
# Unlike greatest, this is NULL for NULL.
macro("hw_not_negative(n)", "CASE WHEN n < 0 THEN 0 ELSE n END")
macro(
    "hw_from(s, position)",
    "CASE WHEN position > 0 THEN position - 1 WHEN position < 0 THEN length(s) + position ELSE position END",
)
# The characters from start (which may lie before the string) to before start + count.
macro(
    "hw_slice(s, start, count)",
    "substring(s, hw_not_negative(start) + 1, hw_not_negative(start + count - hw_not_negative(start)))",
)
macro("hw_like(s, p, escape)", "CASE WHEN contains(p, escape) THEN hw_raise('an escape character') ELSE s LIKE p END")
macro("hw_substring(s, position, count)", "hw_slice(s, hw_from(s, position), count)")
macro("hw_code(s)", "CASE WHEN s = '' THEN 0 ELSE ascii(s) END")
macro("hw_count(n)", "CASE WHEN n > 1000000 THEN hw_raise('a long string') ELSE hw_not_negative(n) END")


@translates("Upper", "Lower")
def letters(call: Call, arguments: Arguments) -> Typed:
    _strings(call, arguments)
    return Typed(f"{call.function.lower()}({run('hw_simple', arguments[0].sql)})", _STRING)


@translates("Reverse")
def reverse(call: Call, arguments: Arguments) -> Typed:
    _strings(call, arguments)
    return Typed(f"reverse({run('hw_ascii', arguments[0].sql)})", _STRING)


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
    start, size = (part.value if isinstance(part, Literal) else None for part in call.arguments[1:])
    if start is not None and int(start) >= 0 and size is not None and int(size) >= 0:
        return Typed(f"substring({string.sql}, {max(int(start), 1)}, {size})", _STRING)
    wide = [f"CAST({argument.sql} AS BIGINT)" for argument in (position, count)]
    return Typed(run("hw_substring", string.sql, *wide), _STRING)


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
    escape = option(call, "escapeChar")
    if escape is None or len(escape) != 1:
        raise Untranslatable("LIKE with an unknown escape character")
    if not isinstance(call.arguments[1], Literal):
        return Typed(run("hw_like", arguments[0].sql, arguments[1].sql, text(escape)), pa.bool_())
    pattern = constant(call, 1)
    if not re.fullmatch(rf"(?:[^{re.escape(escape)}]|{re.escape(escape)}[_%{re.escape(escape)}])*", pattern, re.DOTALL):
        raise Untranslatable("LIKE with an escape character where none may be")
    escaped = f" ESCAPE {text(escape)}" if escape in pattern else ""
    return Typed(f"({arguments[0].sql} LIKE {text(pattern)}{escaped})", pa.bool_())


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
    count = cast(run("hw_count", size.sql), pa.int32())
    return Typed(f"{function}({string.sql}, {count}, {filling.sql})", _STRING)


@translates("StringInstr")
def position(call: Call, arguments: Arguments) -> Typed:
    _strings(call, arguments)
    return Typed(f"CAST(strpos({arguments[0].sql}, {arguments[1].sql}) AS INTEGER)", pa.int32())


@translates("StringLocate")
def position_after(call: Call, arguments: Arguments) -> Typed:
    part, string, _ = arguments
    _strings(call, (part, string))
    require(constant(call, 2) == "1", "StringLocate from elsewhere than the start")
    return Typed(f"CAST(strpos({string.sql}, {part.sql}) AS INTEGER)", pa.int32())


@translates("SubstringIndex")
def until_delimiter(call: Call, arguments: Arguments) -> Typed:
    _strings(call, arguments[:2])
    delimiter, count = constant(call, 1), constant(call, 2)
    require(delimiter != "" and count in ("1", "-1"), f"SubstringIndex by {count}")
    return Typed(f"split_part({arguments[0].sql}, {text(delimiter)}, {count})", _STRING)


@translates("StringSplitSQL", "StringSplit")
def split(call: Call, arguments: Arguments) -> Typed:
    """By a constant that is no pattern."""
    _strings(call, arguments[:2])
    delimiter = constant(call, 1)
    require(re.fullmatch(r"[\w\s,;:/#@!=<>~&%'\"-]+", delimiter) is not None, "StringSplit by a pattern")
    require(len(arguments) < 3 or constant(call, 2) == "-1", "StringSplit with a limit")
    return Typed(f"string_split({arguments[0].sql}, {text(delimiter)})", pa.list_(_STRING))


@translates("StringRepeat")
def repeat(call: Call, arguments: Arguments) -> Typed:
    string, times = arguments
    _strings(call, (string,))
    return Typed(f"repeat({string.sql}, {run('hw_count', times.sql)})", _STRING)


@translates("StringSpace")
def spaces(_call: Call, arguments: Arguments) -> Typed:
    return Typed(f"repeat(' ', {run('hw_count', arguments[0].sql)})", _STRING)


@translates("Ascii")
def first_code(call: Call, arguments: Arguments) -> Typed:
    _strings(call, arguments)
    return Typed(run("hw_code", arguments[0].sql), pa.int32())


@translates("Md5")
def md5(_call: Call, arguments: Arguments) -> Typed:
    require(arguments[0].type == pa.binary(), "Md5")
    return Typed(f"md5({arguments[0].sql})", _STRING)


@translates("Sha1")
def sha1(_call: Call, arguments: Arguments) -> Typed:
    require(arguments[0].type == pa.binary(), "Sha1")
    return Typed(f"sha1({arguments[0].sql})", _STRING)


@translates("Sha2")
def sha2(call: Call, arguments: Arguments) -> Typed:
    require(arguments[0].type == pa.binary() and constant(call, 1) in ("0", "256"), "Sha2")
    return Typed(f"sha256({arguments[0].sql})", _STRING)


@translates("Hex")
def hexadecimal(_call: Call, arguments: Arguments) -> Typed:
    require(arguments[0].type in (pa.int64(), pa.binary(), _STRING), f"Hex of {arguments[0].type}")
    return Typed(f"hex({arguments[0].sql})", _STRING)


def _strings(call: Call, arguments: Arguments) -> None:
    if any(argument.type != _STRING for argument in arguments):
        raise Untranslatable(f"{call.function} of {', '.join(str(argument.type) for argument in arguments)}")
