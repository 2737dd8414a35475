"""Strings: searched byte by byte, changed by Arrow, which counts code points as Spark does. Case is changed in ASCII only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from headwater.evaluation.functions.rule import Untranslatable, constant, option, require
from headwater.evaluation.kernels.frames import Unusual, loader
from headwater.evaluation.kernels.rule import Kernel, arrow, computes, truth
from headwater.evaluation.kernels.texts import Pieces, matched

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.algebra.expressions import Call
    from headwater.evaluation.kernels.frames import Frame, Vector

    Arguments = tuple[Kernel, ...]

_STRING = pa.string()
# Whether the text must be at the start, and whether at the end.
_SEARCHES = {"StartsWith": (True, False), "EndsWith": (False, True), "Contains": (False, False)}
_LENGTHS = {"Length": "utf8_length", "OctetLength": "binary_length"}
_SIDES = {"StringTrim": "utf8_trim", "StringTrimLeft": "utf8_ltrim", "StringTrimRight": "utf8_rtrim"}
_LARGEST = 2**31 - 1


@computes(*_SEARCHES)
def part_of(call: Call, arguments: Arguments) -> Kernel:
    _require_strings(call, arguments)
    from_start, to_end = _SEARCHES[call.function]
    return _matching(arguments[0], [constant(call, 1)], from_start=from_start, to_end=to_end)


@computes("Like")
def like(call: Call, arguments: Arguments) -> Kernel:
    """A pattern in which the escape character stands before anything but `_`, `%` or itself is an error in Spark."""
    _require_strings(call, arguments)
    pattern, escape = constant(call, 1), option(call, "escapeChar")
    if escape is None or len(escape) != 1:
        raise Untranslatable("LIKE with an unknown escape character")
    if "_" in pattern and escape not in pattern and "\\" not in pattern:
        return _tested(arguments[0], arrow("match_like", pc.MatchSubstringOptions(pattern)))
    pieces = _pieces(pattern, escape)
    middle = [piece for piece in pieces[1:-1] if piece]
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1:
        return _matching(arguments[0], pieces, from_start=True, to_end=True)
    wanted = [*([first] if first else []), *middle, *([last] if last else [])]
    return _matching(arguments[0], wanted, from_start=first != "", to_end=last != "")


def _pieces(pattern: str, escape: str) -> list[str]:
    """What stands between the `%` of a pattern."""
    pieces, escaped = [""], False
    for character in pattern:
        if escaped:
            require(character in ("%", "_", escape), "LIKE with an escape character where none may be")
            pieces[-1] += character
            escaped = False
        elif character == escape:
            escaped = True
        elif character == "%":
            pieces.append("")
        else:
            require(character != "_", "LIKE with `_` and an escape character")
            pieces[-1] += character
    require(not escaped, "LIKE with an escape character at the end")
    return pieces


@computes("Substring")
def substring(call: Call, arguments: Arguments) -> Kernel:
    _require_strings(call, arguments[:1])
    start, size = int(constant(call, 1)), int(constant(call, 2))
    require(start >= 0 and size >= 0, "Substring from the end")
    first = max(start, 1) - 1
    return _changed(arguments[0], arrow("utf8_slice_codeunits", pc.SliceOptions(first, min(first + size, _LARGEST))))


@computes("Concat")
def concatenated(call: Call, arguments: Arguments) -> Kernel:
    _require_strings(call, arguments)
    joined = arrow("binary_join_element_wise", pc.JoinOptions(null_handling="emit_null"))
    parts = [argument.evaluate for argument in arguments]
    between = pa.scalar("", _STRING)
    return Kernel(_STRING, lambda frame: joined(*(part(frame) for part in parts), between))


@computes("Upper", "Lower")
def letters(call: Call, arguments: Arguments) -> Kernel:
    _require_strings(call, arguments)
    changed, is_ascii = arrow(f"ascii_{call.function.lower()}"), arrow("string_is_ascii")

    def change(texts: pa.Array) -> pa.Array:
        plain, there = truth(is_ascii(texts))
        # What stands under a NULL may be anything.
        if not (plain if there is None else plain | ~there).all():
            raise Unusual
        return changed(texts)

    return _changed(arguments[0], change)


@computes(*_SIDES)
def trim(call: Call, arguments: Arguments) -> Kernel:
    _require_strings(call, arguments)
    characters = constant(call, 1) if len(arguments) > 1 else " "
    require(characters != "", "a trim of nothing")
    return _changed(arguments[0], arrow(_SIDES[call.function], pc.TrimOptions(characters)))


@computes(*_LENGTHS)
def length(call: Call, arguments: Arguments) -> Kernel:
    _require_strings(call, arguments)
    measured, below = arrow(_LENGTHS[call.function]), arguments[0].evaluate
    load = loader(pa.int32())
    return Kernel(pa.int32(), lambda frame: load(measured(below(frame))))


def _matching(argument: Kernel, pieces: list[str], *, from_start: bool, to_end: bool) -> Kernel:
    require(bool(pieces), "LIKE anything")
    below, wanted = argument.evaluate, Pieces.of(pieces)
    return Kernel(pa.bool_(), lambda frame: matched(below(frame), wanted, from_start=from_start, to_end=to_end))


def _tested(argument: Kernel, test: Callable[..., pa.Array]) -> Kernel:
    below = argument.evaluate

    def evaluate(frame: Frame) -> Vector:
        return truth(test(below(frame)))

    return Kernel(pa.bool_(), evaluate)


def _changed(argument: Kernel, change: Callable[..., pa.Array]) -> Kernel:
    below = argument.evaluate
    return Kernel(_STRING, lambda frame: change(below(frame)))


def _require_strings(call: Call, arguments: Arguments) -> None:
    if any(argument.type != _STRING for argument in arguments):
        raise Untranslatable(f"{call.function} of {', '.join(str(argument.type) for argument in arguments)}")
