"""Common expressions without a database: chains of NumPy and Arrow kernels, put together once and run on each delta.

    the value of compile(e) = Spark's value of e,   or it raises Unusual,   or there is no kernel

A statement costs a millisecond even on ten rows; a kernel some microseconds. Which of both a function has is a matter of use:
what is not here has SQL in `duckdb_sql`, and what is here has it, too, for the values that kernels refuse.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.algebra.expressions import Call, Column, Expression, Literal
from headwater.evaluation.functions.rule import Untranslatable
from headwater.evaluation.kernels import arithmetic, casts, comparison, conditions, dates, decimals, strings, times
from headwater.evaluation.kernels.constants import literal
from headwater.evaluation.kernels.frames import Frame, Unusual, Validity, both, is_fixed, loader
from headwater.evaluation.kernels.rule import KERNELS, NULL_TOLERANT, Kernel
from headwater.evaluation.settings import only_spark_knows

__all__ = ["Frame", "Kernel", "Unusual", "Validity", "both", "compile_kernel", "functions"]

FAMILIES = (arithmetic, casts, comparison, conditions, dates, decimals, strings, times)
# A kernel calls those below it; Python's stack is only so deep.
_DEEPEST = 100


def compile_kernel(expression: Expression) -> Kernel:
    """The kernel of an expression; raises `Untranslatable` if there is none."""
    return _compile(expression, 0)


def functions() -> list[str]:
    """The Catalyst classes that have a kernel."""
    return sorted(KERNELS)


def _compile(expression: Expression, depth: int) -> Kernel:
    if depth > _DEEPEST:
        raise Untranslatable("too deep")
    if isinstance(expression, Column):
        return _column(expression)
    if isinstance(expression, Literal):
        return literal(expression)
    return _call(expression, tuple(_compile(argument, depth + 1) for argument in expression.arguments))


def _column(column: Column) -> Kernel:
    index = column.index
    if is_fixed(column.type):
        load = loader(column.type)
        return Kernel(column.type, lambda frame: frame.vector(index, load))
    if column.type == pa.null():
        raise Untranslatable("a column of nothing but NULL")
    return Kernel(column.type, lambda frame: frame.array(index))


def _call(call: Call, arguments: tuple[Kernel, ...]) -> Kernel:
    rule = KERNELS.get(call.function)
    if rule is None:
        raise Untranslatable(f"no kernel for {call.function}")
    if (reason := only_spark_knows(call)) is not None:
        raise Untranslatable(f"{call.function} {reason}")
    if all(argument.constant is not None for argument in arguments):
        raise Untranslatable(f"{call.function} of constants alone")
    if call.function not in NULL_TOLERANT and any(argument.null for argument in arguments):
        raise Untranslatable(f"{call.function} of NULL")
    return rule(call, arguments)
