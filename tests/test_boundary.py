"""Whatever fails inside, only a HeadwaterError comes out, which names the call; what users raise themselves is theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import headwater as hw
from headwater.boundary import bounded
from headwater.definitions import Definitions
from headwater.runtime.epochs import Epochs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@bounded
class Surface:
    """A public class."""

    def find(self, name: str) -> int:
        return {}[name]

    def each(self) -> Iterator[int]:
        yield 1
        raise IndexError("no second one")

    def interrupted(self) -> None:
        raise KeyboardInterrupt

    @property
    def size(self) -> int:
        """How many."""
        raise ValueError("it has none")

    def refuse(self) -> None:
        raise hw.InvalidName("not so")


def test_an_unforeseen_error_becomes_one_of_ours_that_names_the_call() -> None:
    with pytest.raises(
        hw.InternalError, match=r"^\[INTERNAL_ERROR\] Surface\.find\('top'\) failed .* KeyError: 'top'"
    ) as caught:
        Surface().find("top")
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.code == "INTERNAL_ERROR"
    assert "report this" in str(caught.value)


def test_iterators_and_properties_are_bounded_too() -> None:
    rows = Surface().each()
    assert next(rows) == 1
    with pytest.raises(hw.InternalError, match="no second one"):
        next(rows)
    with pytest.raises(hw.InternalError, match="it has none"):
        _ = Surface().size
    assert Surface.size.__doc__ == "How many."


def test_what_is_meant_for_others_passes() -> None:
    with pytest.raises(hw.InvalidName, match="not so"):
        Surface().refuse()
    with pytest.raises(KeyboardInterrupt):
        Surface().interrupted()
    with pytest.raises(TypeError, match="positional argument"):
        Surface().find("a", "b")  # type: ignore[call-arg]


def failing(*_: Any, **__: Any) -> None:
    raise KeyError("unforeseen")


def test_definitions_and_commits_that_fail_inside_change_nothing(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    with hw.connect(spark=spark) as session:
        session.create_table("t", "x INT")
        epoch = session.epoch
        with monkeypatch.context() as patch:
            patch.setattr(Definitions, "view", failing)
            with pytest.raises(hw.InternalError, match=r"Session\.create_view\('top', 'SELECT x FROM t'\).*KeyError"):
                session.create_view("top", "SELECT x FROM t")
            with pytest.raises(hw.InternalError, match="create_view"):
                session.sql("CREATE LIVE VIEW top AS SELECT x FROM t")
        with monkeypatch.context() as patch:
            patch.setattr(Epochs, "commit", failing)
            with pytest.raises(hw.InternalError, match="KeyError: 'unforeseen'"):
                session.insert("t", [(1,)])
            with pytest.raises(hw.InternalError, match="KeyError: 'unforeseen'"), session.transaction() as transaction:
                transaction.insert("t", [(1,)])
        assert session.epoch == epoch
        assert not session.views()
        session.insert("t", [(1,)])
        assert session.table("t").rows() == [(1,)]


def test_errors_of_the_users_own_block_are_theirs(spark: SparkSession) -> None:
    with hw.connect(spark=spark) as session:
        session.create_table("t", "x INT")
        with pytest.raises(ZeroDivisionError), session.transaction() as transaction:
            transaction.insert("t", [(1 // 0,)])
        assert session.table("t").rows() == []
