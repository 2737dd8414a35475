"""Names of users as file names: each its own, and none a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater as hw
from headwater.filenames import file_name, former_file_name, require_name

if TYPE_CHECKING:
    from pathlib import Path

# Letters that matter come often: those of paths, of escapes, and capitals.
NAMES = st.one_of(st.text(), st.text("aA.%/2fF~ ", max_size=8), st.text(max_size=400), st.text(st.characters(codec=None)))


@given(NAMES)
def test_a_file_name_is_one_component_of_a_path(name: str) -> None:
    made = file_name(name)
    assert made
    assert made.isascii()
    assert len(made) <= 120
    assert not made.startswith(".")
    assert "/" not in made
    assert "\0" not in made


@given(st.lists(NAMES, min_size=2, max_size=6, unique=True))
def test_no_two_names_share_a_file_name_whatever_its_case(names: list[str]) -> None:
    assert len({file_name(name).lower() for name in names}) == len(names)


def test_plain_names_are_their_own_file_names() -> None:
    for name in ("orders", "shop-2024_09", "a.b", "orders~1"):
        assert file_name(name) == name
        assert former_file_name(name) is None


def test_names_of_earlier_releases_are_known() -> None:
    assert former_file_name("Orders, items") == "Orders%2C%20items"
    assert former_file_name("x" * 200) == "x" * 200
    # These led out of their folder, or were the folder itself.
    assert [former_file_name(name) for name in ("", ".", "..", "x" * 300)] == [None] * 4


def test_long_names_are_told_apart_at_their_ends(tmp_path: Path) -> None:
    for name in ("x" * 300, "x" * 299 + "y", "ü" * 300, "😀" * 300):
        (tmp_path / f"{file_name(name)}.json.part").touch()
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("name", ["", "  ", None, 3])
def test_blank_names_are_refused(name: object) -> None:
    with pytest.raises(hw.InvalidName, match="cannot be the name of a stream"):
        require_name(name, "a stream")
