"""Passwords are not repeated, whoever repeats the address that they are in."""

from __future__ import annotations

import pytest

import headwater as hw
from headwater.redaction import hiding, redacted, shown_cause

SECRET = "s3cr3t"  # noqa: S105  (of nobody)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"at 'postgresql://ada:{SECRET}@server/shop'", "at 'postgresql://ada:***@server/shop'"),
        (f"postgres://ada:a/{SECRET}@b@server", "postgres://ada:***@server"),
        (f"s3://key:{SECRET}@bucket/path is away", "s3://key:***@bucket/path is away"),
        (f"https://{SECRET}@server/hook", "https://***@server/hook"),
        (f"https://server/hook?a=1&access_token={SECRET}&b=2", "https://server/hook?a=1&access_token=***&b=2"),
        (f"host=server password={SECRET} user=ada", "host=server password=*** user=ada"),
        (f"password='it\\'s {SECRET}' user=ada", "password=*** user=ada"),
        (f"{{'sasl.password': '{SECRET}', 'a': 'b'}}", "{'sasl.password': '***', 'a': 'b'}"),
        ("postgresql://ada@server/shop", "postgresql://ada@server/shop"),
        ("the key of table 'orders' is (id=3)", "the key of table 'orders' is (id=3)"),
        ("SELECT a FROM b WHERE c = 'x'", "SELECT a FROM b WHERE c = 'x'"),
    ],
)
def test_texts(text: str, shown: str) -> None:
    assert redacted(text) == shown
    assert str(hw.InvalidTarget(text)) == f"[INVALID_TARGET] {shown}"


@pytest.mark.parametrize(
    ("address", "error"),
    [
        (f"https://ada:{SECRET}@server/hook", f"nonnumeric port: '{SECRET}@server'"),
        (f"postgresql://ada:a/{SECRET}@server", f'invalid integer value "{SECRET}" for option "port"'),
        (f"postgresql://ada:x@{SECRET}@server", f'host name "{SECRET}@server" is not known'),
        ("postgresql://ada:s3%63r3t@server", f'the password "{SECRET}" is wrong'),
        (f"host=server password = '{SECRET}'", f'missing "=" after "{SECRET}"'),
        ("postgresql://ada:ab@server", 'no port "ab", as about'),
    ],
)
def test_pieces_of_an_address_that_is_known(address: str, error: str) -> None:
    shown = redacted(error, address)
    assert SECRET not in shown
    assert '"ab"' not in shown
    assert "***" in shown
    assert shown.endswith(error[-1:])
    with pytest.raises(ConnectionError) as raised, hiding(address):
        raise ValueError(error)
    assert SECRET not in str(raised.value)
    assert raised.value.__suppress_context__


def test_a_cause_is_shown_unless_something_behind_it_tells_a_password() -> None:
    telling = OSError("away")
    telling.__cause__ = ValueError(f"postgresql://ada:{SECRET}@server")
    assert shown_cause(telling) is None
    plain = OSError("away")
    assert shown_cause(plain) is plain
    with pytest.raises(OSError, match="away") as raised, hiding(f"postgresql://ada:{SECRET}@server"):
        raise plain
    assert raised.value is plain
