"""Comparison. NaN equals itself and is above all numbers, −0.0 equals 0.0, strings and binary values compare by their bytes.

NumPy says no to every question about NaN, so `a > b` is asked as `not a ≤ b`, and NaN is looked for where it matters.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.evaluation.functions.rule import Untranslatable, require
from headwater.evaluation.kernels.constants import member
from headwater.evaluation.kernels.frames import dtype_of, is_fixed, validity
from headwater.evaluation.kernels.rule import Kernel, arrow, computes, elementwise, mapped, same_type, truth
from headwater.evaluation.kernels.texts import Pieces
from headwater.evaluation.kernels.texts import among as among_pieces

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from headwater.algebra.expressions import Call
    from headwater.evaluation.kernels.frames import Frame, Validity, Vector

    Arguments = tuple[Kernel, ...]
    Compare = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]

_BOOLEAN = pa.bool_()
_BYTES = (pa.string(), pa.binary())
# As many strings are compared one by one.
_FEW = 16
_COMPARED: dict[str, tuple[Compare, str]] = {
    "EqualTo": (np.equal, "equal"),
    "LessThan": (np.less, "less"),
    "LessThanOrEqual": (np.less_equal, "less_equal"),
    "GreaterThan": (np.greater, "greater"),
    "GreaterThanOrEqual": (np.greater_equal, "greater_equal"),
}


def _equal(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    return (a == b) | ((a != a) & (b != b))  # noqa: PLR0124


def _less(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    # If b is NaN all but NaN are less; else `b ≤ a` is false of NaN, too.
    return ~(b <= a) & (a == a)  # noqa: PLR0124


_TOTAL: dict[str, Compare] = {
    "EqualTo": _equal,
    "LessThan": _less,
    "LessThanOrEqual": lambda a, b: ~_less(b, a),
    "GreaterThan": lambda a, b: _less(b, a),
    "GreaterThanOrEqual": lambda a, b: ~_less(a, b),
}
# The same, if it is known that b is a number.
_TO_NUMBER: dict[str, Compare] = {
    "EqualTo": np.equal,
    "LessThan": np.less,
    "LessThanOrEqual": np.less_equal,
    "GreaterThan": lambda a, b: ~(a <= b),
    "GreaterThanOrEqual": lambda a, b: ~(a < b),
}


@computes(*_COMPARED)
def compare(call: Call, arguments: Arguments) -> Kernel:
    kind = same_type(call, arguments)
    left, right = arguments
    compared, name = _COMPARED[call.function]
    if kind in _BYTES:
        for value, other in ((left, right), (right, left)):
            if call.function == "EqualTo" and other.constant is not None:
                return Kernel(_BOOLEAN, _text_finder(value, [other.constant.as_py()]))
        return _of_bytes(left, right, arrow(name))
    require(is_fixed(kind), f"{call.function} of {kind}")
    if pa.types.is_floating(kind):
        number = right.constant is not None and not np.isnan(right.constant[0])
        compared = (_TO_NUMBER if number else _TOTAL)[call.function]
    return elementwise(_BOOLEAN, lambda a, b, _: compared(a, b), left, right)


@computes("EqualNullSafe")
def same(call: Call, arguments: Arguments) -> Kernel:
    equal = compare(_named(call, "EqualTo"), arguments)
    nulls = [_there(argument) for argument in arguments]

    def evaluate(frame: Frame) -> Vector:
        values, valid = equal.evaluate(frame)
        if valid is None:
            return values, None
        left, right = (there(frame) for there in nulls)
        neither = np.zeros_like(values) if left is None or right is None else ~(left | right)
        return (values & valid) | neither, None

    return Kernel(_BOOLEAN, evaluate)


@computes("IsNull", "IsNotNull")
def is_null(call: Call, arguments: Arguments) -> Kernel:
    there = _there(arguments[0])
    negated = call.function == "IsNull"

    def evaluate(frame: Frame) -> Vector:
        valid = there(frame)
        if valid is None:
            return np.full(frame.count, not negated), None
        return ~valid if negated else valid, None

    return Kernel(_BOOLEAN, evaluate)


@computes("In")
def among(call: Call, arguments: Arguments) -> Kernel:
    kind = same_type(call, arguments)
    members = arguments[1:]
    require(all(part.constant is not None for part in members), "In without constants")
    found = [part.constant for part in members if not part.null]
    values = [part.as_py() if isinstance(part, pa.Scalar) else part[0] for part in found]
    return _among(kind, arguments[0], values, null=len(found) < len(members))


@computes("InSet")
def among_constants(call: Call, arguments: Arguments) -> Kernel:
    described = call.option("hset")
    if described is None:
        raise Untranslatable("an InSet whose values are not known")
    kind = arguments[0].type
    members = json.loads(described)
    return _among(kind, arguments[0], [member(m, kind) for m in members if m is not None], null=None in members)


def _among(kind: pa.DataType, value: Kernel, members: list[Any], *, null: bool) -> Kernel:
    """Of a value that is not found among members of which one is NULL it is not known whether it is there."""
    find = _text_finder(value, members) if kind == pa.string() else _finder(kind, value, members)

    def evaluate(frame: Frame) -> Vector:
        found, valid = find(frame)
        if null:
            return found, found if valid is None else found & valid
        return found, valid

    return Kernel(_BOOLEAN, evaluate)


def _finder(kind: pa.DataType, value: Kernel, members: list[Any]) -> Callable[[Frame], Vector]:
    require(is_fixed(kind), f"In of {kind}")
    known = np.unique(np.array(members, dtype_of(kind)))
    require(not (pa.types.is_floating(kind) and np.isnan(known).any()), "In with NaN")
    require(len(known) > 0, "In without members")
    last = len(known) - 1

    def find(values: NDArray[Any], _valid: Validity) -> NDArray[Any]:
        places = np.minimum(known.searchsorted(values), last)
        return known[places] == values

    evaluate: Callable[[Frame], Vector] = mapped(_BOOLEAN, value, find).evaluate
    return evaluate


def _text_finder(value: Kernel, members: list[Any]) -> Callable[[Frame], Vector]:
    below = value.evaluate
    if len(members) <= _FEW:
        pieces = Pieces.of(members)
        return lambda frame: among_pieces(below(frame), pieces)
    is_in = arrow("is_in", pc.SetLookupOptions(pa.array(members, pa.string()), skip_nulls=True))

    def find(frame: Frame) -> Vector:
        texts = below(frame)
        return truth(is_in(texts))[0], validity(texts)

    return find


@computes("IsNaN")
def is_nan(call: Call, arguments: Arguments) -> Kernel:
    require(pa.types.is_floating(arguments[0].type), f"{call.function} of {arguments[0].type}")
    below = arguments[0].evaluate

    def evaluate(frame: Frame) -> Vector:
        values, valid = below(frame)
        found = np.isnan(values)
        return found if valid is None else found & valid, None

    return Kernel(_BOOLEAN, evaluate)


def _of_bytes(left: Kernel, right: Kernel, compared: Callable[..., pa.Array]) -> Kernel:
    first, second = left.evaluate, right.evaluate
    return Kernel(_BOOLEAN, lambda frame: truth(compared(first(frame), second(frame))))


def _there(argument: Kernel) -> Callable[[Frame], Validity]:
    below = argument.evaluate
    if not is_fixed(argument.type):
        return lambda frame: None if argument.constant is not None else validity(below(frame))
    return lambda frame: below(frame)[1]


def _named(call: Call, function: str) -> Call:
    from dataclasses import replace

    return replace(call, function=function)
