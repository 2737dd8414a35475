"""Passwords stay out of what people and logs see: errors, progress, reprs.

    postgresql://ada:***@server/shop      whatever is between a user and the server
    host=server password=***              values that are called a password, a secret, a token or a key
    https://server/hook?token=***         the same in the query of an address

Every `HeadwaterError` is told this way. Where the address in use is known, its secrets are hidden in whatever form a driver
repeats them: quoted, in pieces, or without the address around them.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator

MASK = "***"
# The length is bounded, so that a long text takes no longer than its length.
_WORD = r"[\w.-]{0,40}(?:password|passwd|passphrase|pwd|secret|token|credential|api_?key|access_?key|private_?key)[\w.-]{0,40}"
_VALUE = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\s,;&#)\]}'\"]+"
# A password may have any character in it, also those that would end it.
_USER = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s:/@]*):\S*@", re.IGNORECASE)
_TOKEN = re.compile(r"(\bhttps?://)[^\s:/@]+@", re.IGNORECASE)
_NAMED = re.compile(rf"\b({_WORD}=)(?:{_VALUE})", re.IGNORECASE)
_QUOTED = re.compile(rf"((['\"]){_WORD}\2: )(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")", re.IGNORECASE)
_IN_ADDRESS = (
    re.compile(r"\w[\w+.-]*://[^:/@]*:(.*)@", re.DOTALL),
    re.compile(r"https?://([^:/@]+)@"),
    re.compile(rf"\b{_WORD}\s*=\s*({_VALUE})", re.IGNORECASE),
)
_DELIMITERS = re.compile(r"[@/:?#\s]+")
# A shorter secret may be a part of any word.
_TELLING = 4


def redacted(text: str, address: str = "") -> str:
    """A text without passwords; of an address that is given, without any piece of its own."""
    for secret in _secrets(address):
        found = re.escape(secret)
        text = re.sub(found if len(secret) >= _TELLING else rf"(?<!\w){found}(?!\w)", MASK, text)
    text = _TOKEN.sub(rf"\1{MASK}@", _USER.sub(rf"\1:{MASK}@", text))
    return _QUOTED.sub(rf"\1'{MASK}'", _NAMED.sub(rf"\1{MASK}", text))


def shown_cause(error: BaseException, address: str = "") -> BaseException | None:
    """The error, for `raise … from`; None if it, or what is behind it, tells a password, as a traceback would show that."""
    behind: BaseException | None = error
    while behind is not None:
        if redacted(str(behind), address) != str(behind):
            return None
        behind = behind.__cause__ or behind.__context__
    return error


@contextmanager
def hiding(address: str) -> Iterator[None]:
    """Within, a driver that tells the password of an address in its error is quoted without it."""
    try:
        yield
    except Exception as error:
        if shown_cause(error, address) is None:
            raise ConnectionError(redacted(str(error), address)) from None
        raise


def _secrets(address: str) -> list[str]:
    """What is secret in an address, the longest first, as it stands there and as it is meant, whole and in pieces."""
    found = [match[1].strip("'\"") for each in _IN_ADDRESS for match in each.finditer(address)]
    pieces = {piece for secret in found for piece in (secret, unquote(secret), *_DELIMITERS.split(secret)) if piece}
    return sorted(pieces, key=len, reverse=True)
