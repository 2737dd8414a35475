"""The boundary between Headwater and its users: whatever fails inside, only a `HeadwaterError` comes out.

`@bounded` on a public class sees to it for each of its public methods. An error that nobody foresaw becomes an `InternalError`,
which names the call, and has the error itself as its cause. What a user's own code raises (within `with session.transaction()`)
is theirs, and passes; so does Python's `TypeError` for a call with the wrong arguments.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import wraps
from inspect import isfunction, isgeneratorfunction
from typing import TYPE_CHECKING, Any, TypeVar

from headwater.errors import EvaluationFailed, HeadwaterError, InternalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Public = TypeVar("Public")

# A long statement is shown up to this length.
_SHOWN = 300


def bounded(public: type[Public]) -> type[Public]:
    """The class, whose public methods and properties raise nothing but Headwater's errors."""
    for name, part in list(vars(public).items()):
        if name.startswith("_"):
            continue
        if isfunction(part):
            setattr(public, name, _bounded(part))
        elif isinstance(part, property):
            get, put = (None if each is None else _bounded(each) for each in (part.fget, part.fset))
            setattr(public, name, property(get, put, doc=part.__doc__))
    return public


def _bounded(function: Callable[..., Any]) -> Callable[..., Any]:
    if isgeneratorfunction(function):

        @wraps(function)
        def generator(*arguments: Any, **options: Any) -> Iterator[Any]:  # noqa: ANN401  (those of the function)
            with boundary(function.__qualname__, *arguments[1:]):
                yield from function(*arguments, **options)

        return generator

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401  (those of the function)
        try:
            return function(*arguments, **options)
        except HeadwaterError:
            raise
        except Exception as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                # The call itself failed: these are not the arguments of the function.
                raise
            raise _foreseen(error, function.__qualname__, arguments[1:]) from error

    return call


@contextmanager
def boundary(call: str, *arguments: object) -> Iterator[None]:
    """A block out of which only Headwater's errors come; `call` and its arguments say what was asked for."""
    try:
        yield
    except HeadwaterError:
        raise
    except Exception as error:
        raise _foreseen(error, call, arguments) from error


def _foreseen(error: Exception, call: str, arguments: tuple[object, ...]) -> HeadwaterError:
    """An error that nobody foresaw, as one of ours."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    named = ", ".join(repr(each[:_SHOWN]) for each in arguments if isinstance(each, str))
    if isinstance(error, PySparkException | Py4JError):
        from headwater.evaluation.spark import failure

        return EvaluationFailed(f"Spark fails in {call}({named}), and says {failure(error)}")
    return InternalError(
        f"{call}({named}) failed in a way that Headwater does not know: {type(error).__name__}: {error}. "
        "No commit is left half done. Please report this, with the statement and the traceback"
    )
