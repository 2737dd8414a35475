"""What a kernel is, and what the families of kernels share.

A rule gets the call and the kernels of its arguments and gives a kernel for it. When it runs, a kernel may raise `Unusual` —
the same rows then go to another engine — but its value never differs from Spark's. What can be decided when the kernel is made
is decided then: at ten rows the cost is the number of calls, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from headwater.evaluation.functions.rule import Untranslatable
from headwater.evaluation.kernels.frames import Frame, both, is_fixed, loader, storer

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from headwater.algebra.expressions import Call
    from headwater.evaluation.kernels.frames import Validity, Vector

    Operation: TypeAlias = Callable[[NDArray[Any], NDArray[Any], Validity], NDArray[Any]]
    Unary: TypeAlias = Callable[[NDArray[Any], Validity], NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A compiled expression: a vector of each frame, or an Arrow array if the type has no fixed width.

    A constant is a vector of one value without a dimension, or an Arrow scalar.
    """

    type: pa.DataType
    evaluate: Callable[[Frame], Any]
    constant: Any = None

    def array(self, rows: pa.RecordBatch) -> pa.Array:
        """The value for each of the rows, of which there is at least one."""
        return self.column()(Frame(rows))

    def column(self) -> Callable[[Frame], pa.Array]:
        """What gives the value for each row of a frame as an Arrow array."""
        evaluate = self.evaluate
        if is_fixed(self.type):
            store = storer(self.type)
            return lambda frame: store(evaluate(frame), frame.count)
        if self.constant is not None:
            return lambda frame: pa.repeat(self.constant, frame.count)
        return evaluate

    @property
    def null(self) -> bool:
        """Whether it is the constant NULL."""
        if self.constant is None:
            return False
        return not self.constant.is_valid if isinstance(self.constant, pa.Scalar) else self.constant[1] is not None


Rule: TypeAlias = "Callable[[Call, tuple[Kernel, ...]], Kernel]"
KERNELS: dict[str, Rule] = {}
# An Arrow array of booleans as a vector.
truth = loader(pa.bool_())
_store_booleans = storer(pa.bool_())
# Functions that have a use for NULL as a constant; of the others Catalyst makes NULL.
NULL_TOLERANT = ("CaseWhen", "If", "Coalesce", "In")


def computes(*functions: str) -> Callable[[Rule], Rule]:
    """Registers a rule for Catalyst classes."""

    def register(rule: Rule) -> Rule:
        for function in functions:
            KERNELS[function] = rule
        return rule

    return register


def constant(kind: pa.DataType, value: Any) -> Kernel:  # noqa: ANN401  (a vector or a scalar)
    """A kernel that gives one value."""
    return Kernel(kind, lambda _: value, value)


def elementwise(kind: pa.DataType, operate: Operation, left: Kernel, right: Kernel) -> Kernel:
    """NULL where an argument is NULL, else what `operate` gives; it is told what is there, for what it must refuse."""
    first, second = left.evaluate, right.evaluate

    def evaluate(frame: Frame) -> Vector:
        a, there = first(frame)
        b, also = second(frame)
        valid = both(there, also)
        return operate(a, b, valid), valid

    return Kernel(kind, evaluate)


def mapped(kind: pa.DataType, argument: Kernel, operate: Unary) -> Kernel:
    """NULL where the argument is NULL, else what `operate` gives."""
    below = argument.evaluate

    def evaluate(frame: Frame) -> Vector:
        values, valid = below(frame)
        return operate(values, valid), valid

    return Kernel(kind, evaluate)


def arrow(name: str, options: pc.FunctionOptions | None = None) -> Callable[..., pa.Array]:
    """A function of Arrow, looked up once."""
    function = pc.get_function(name)
    return lambda *arguments: function.call(list(arguments), options)


def mask(chosen: NDArray[np.bool_]) -> pa.BooleanArray:
    """Booleans as an Arrow array."""
    return _store_booleans((chosen, None), len(chosen))


def same_type(call: Call, arguments: tuple[Kernel, ...]) -> pa.DataType:
    """The type that all arguments share."""
    kind = arguments[0].type
    if any(argument.type != kind for argument in arguments):
        raise Untranslatable(f"{call.function} of different types")
    return kind
