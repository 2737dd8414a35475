r"""Where the tokens of a statement start and end, by the rules of Spark's own lexer (`SqlBaseLexer.g4`).

Only what decides where a piece of text may be cut: strings (`'a\'b'`, `'it''s'`, `r'\'`), backquoted names, words, comments
(nested ones; `--` goes on after a backslash at the line's end) and single characters for all else. A general SQL tokenizer
will not do: sqlglot's takes the rest of `EXPLAIN …` as one string, `{# … #}` as a comment, and knows no continued `--`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from headwater.errors import InvalidQuery
from headwater.text import HALVES

_BLANK = " \t\n\f\r\u000b\u00a0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000"
_TOKEN = re.compile(
    rf"""
      (?P<blank>   [{_BLANK}]++ | --(?:\\\n|[^\r\n])*+ )
    | (?P<comment> /\*(?!\+) )
    | (?P<string>  [rR]'[^']*+' | [rR]"[^"]*+" | '(?:[^'\\]++|\\.|'')*+' | "(?:[^"\\]++|\\.|"")*+" )
    | (?P<quoted>  `(?:[^`]++|``)*+` )
    | (?P<word>    \w++ )
    | (?P<symbol>  /\*\+ | \*/ | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
_UNFINISHED = {"'": "string", '"': "string", "`": "name in backquotes"}
CLOSING = (")", "]", "}")
_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Token:
    """`text[start:end]` of a statement; `depth` counts the brackets around it; `word` is its keyword or symbol, else empty."""

    kind: Literal["string", "quoted", "word", "symbol"]
    start: int
    end: int
    depth: int
    word: str


def scan(text: str) -> list[Token]:
    """The tokens of `text`, without blanks and comments. Brackets are balanced, or the text is refused."""
    _require_text(text)
    tokens: list[Token] = []
    open_brackets: list[str] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        kind = match.lastgroup if match else None
        if match is None or kind is None:
            raise _refused(text, position, "not readable as SQL")
        if kind == "comment":
            position = _end_of_comment(text, position)
            continue
        piece = match.group()
        if kind != "blank":
            if piece in _UNFINISHED:
                raise _refused(text, position, f"this {_UNFINISHED[piece]} does not end")
            if piece in CLOSING and (not open_brackets or open_brackets.pop() != piece):
                raise _refused(text, position, f"{piece} closes nothing")
            # ASCII alone, as 'ſ'.upper() is an S
            word = piece.upper() if kind == "symbol" or (kind == "word" and piece.isascii()) else ""
            tokens.append(Token(kind, position, match.end(), len(open_brackets), word))  # type: ignore[arg-type]
            if piece in _CLOSED_BY:
                open_brackets.append(_CLOSED_BY[piece])
        position = match.end()
    if open_brackets:
        raise InvalidQuery(f"a {open_brackets[-1]} is missing at the end of: {excerpt(text)}")
    return tokens


def _require_text(text: str) -> None:
    if not isinstance(text, str):
        raise InvalidQuery(f"a query or statement is text, not {type(text).__name__}")
    half = None if text.isascii() else HALVES.search(text)
    if half is not None:
        raise InvalidQuery(f"{half.group()!r} is half of a surrogate pair and no character ({place(text, half.start())})")


def place(text: str, position: int) -> str:
    """`line 2, column 7`, for messages."""
    return f"line {text.count(chr(10), 0, position) + 1}, column {position - text.rfind(chr(10), 0, position)}"


def excerpt(text: str, length: int = 80) -> str:
    """The beginning of a text, on one line, for messages."""
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else f"{line[:length]}…"


def _end_of_comment(text: str, start: int) -> int:
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    raise _refused(text, start, "this comment does not end")


def _refused(text: str, position: int, reason: str) -> InvalidQuery:
    return InvalidQuery(f"{reason} ({place(text, position)}): {excerpt(text[position:])}")
