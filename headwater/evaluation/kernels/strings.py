"""Strings, by Arrow's kernels. Arrow counts code points, as Spark does; case is changed in ASCII only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.evaluation.functions.rule import Untranslatable, constant, option, require
from headwater.evaluation.kernels.frames import Unusual, loader
from headwater.evaluation.kernels.rule import Kernel, arrow, computes, truth

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.algebra.expressions import Call
    from headwater.evaluation.kernels.frames import Frame, Vector

    Arguments = tuple[Kernel, ...]

_STRING = pa.string()
_SEARCHES = {"StartsWith": "starts_with", "EndsWith": "ends_with", "Contains": "match_substring"}
_LENGTHS = {"Length": "utf8_length", "OctetLength": "binary_length"}
_SIDES = {"StringTrim": "utf8_trim", "StringTrimLeft": "utf8_ltrim", "StringTrimRight": "utf8_rtrim"}
_LARGEST = 2**31 - 1


@computes(*_SEARCHES)
def part_of(call: Call, arguments: Arguments) -> Kernel:
    _require_strings(call, arguments)
    return _tested(arguments[0], arrow(_SEARCHES[call.function], pc.MatchSubstringOptions(constant(call, 1))))


@computes("Like")
def like(call: Call, arguments: Arguments) -> Kernel:
    """Without escapes; Spark's optimiser has turned most patterns into something simpler already."""
    _require_strings(call, arguments)
    pattern, escape = constant(call, 1), option(call, "escapeChar")
    if escape is None or escape in pattern or "\\" in pattern:
        raise Untranslatable("LIKE with an escape character")
    return _tested(arguments[0], arrow("match_like", pc.MatchSubstringOptions(pattern)))


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
        plain, _ = truth(is_ascii(texts))
        if np.count_nonzero(plain) + texts.null_count < len(plain):
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
