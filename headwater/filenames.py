"""File names of what users have named: streams, exports, and whatever else is kept in a file of its own.

    a-z 0-9 _ - ~ and, but for the first character, a dot    stay as they are
    every other byte of the name in UTF-8                    is % and two hexadecimal digits; no name at all is %
    what is longer than 120 characters after that            is its beginning, %~ and a SHA-256 of the whole name

No two names have one file name, also where a file system takes capitals for small letters, and no file name is a path, hidden,
or empty.
"""

from __future__ import annotations

from hashlib import sha256
from urllib.parse import quote

from headwater.errors import InvalidName

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-~.")
# A file system takes 255 bytes, some that encrypt take 143; an ending and that of a file in the making come on top.
_LONGEST = 120
_BEGINNING = 50
# With the ending of an export's note, a file system took no more.
_LONGEST_FORMER = 250


def file_name(name: str) -> str:
    """The one file name that stands for a name."""
    said = name.encode("utf-8", "surrogatepass")
    text = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in said)
    if text.startswith("."):
        text = f"%2e{text[1:]}"
    if not text:
        return "%"
    return text if len(text) <= _LONGEST else f"{text[:_BEGINNING]}%~{sha256(said).hexdigest()}"


def former_file_name(name: str) -> str | None:
    """Where earlier releases kept what has this name; None if that is the same place, or was no file name at all."""
    former = quote(name, safe="", errors="surrogatepass")
    return None if former in ("", ".", "..", file_name(name)) or len(former) > _LONGEST_FORMER else former


def require_name(name: object, kind: str) -> str:
    """The name of a stream or an export, which is any text that is not blank."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidName(f"{name!r} cannot be the name of {kind}: a name is text that is not blank")
    return name
