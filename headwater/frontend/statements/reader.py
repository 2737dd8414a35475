"""A cursor over the tokens of one statement: looks ahead, takes keywords and names, cuts slices of the original text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.errors import InvalidName, InvalidQuery
from headwater.frontend.statements.scanner import CLOSING, excerpt, place, scan

if TYPE_CHECKING:
    from headwater.frontend.statements.scanner import Token

_NUMBER = re.compile(r"\d+(e\d+)?(l|s|y|f|d|bd)?", re.IGNORECASE)


class Reader:
    """Reads forward from `position`; every method that does not find what it needs raises and says what was expected."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Token] = scan(text)
        self.position = 0
        while self.tokens and self.tokens[-1].word == ";":
            self.tokens.pop()

    def at(self, *words: str, ahead: int = 0) -> bool:
        """Are these keywords or symbols next?"""
        first = self.position + ahead
        return [token.word for token in self.tokens[first : first + len(words)]] == list(words)

    def accept(self, *words: str) -> bool:
        """Take these keywords or symbols if they are next."""
        found = self.at(*words)
        if found:
            self.position += len(words)
        return found

    def expect(self, *words: str) -> None:
        """Take these keywords or symbols."""
        if not self.accept(*words):
            raise self.unexpected(" ".join(words))

    def choice(self, *words: str) -> str:
        """Take one of these keywords."""
        for word in words:
            if self.accept(word):
                return word
        raise self.unexpected(" or ".join(words))

    def ended(self) -> bool:
        """Nothing is left."""
        return self.position == len(self.tokens)

    def expect_end(self) -> None:
        """Nothing may be left."""
        if not self.ended():
            raise self.unexpected("the end of the statement")

    def unexpected(self, wanted: str) -> InvalidQuery:
        """The error for a token that does not fit."""
        if self.ended():
            return InvalidQuery(f"expected {wanted} at the end of: {excerpt(self.text)}")
        start = self.tokens[self.position].start
        return InvalidQuery(f"expected {wanted} at {place(self.text, start)}: {excerpt(self.text[start:])}")

    def name(self, wanted: str) -> str:
        """Take the name of one part of a table, view or column."""
        name = self.part(wanted)
        if self.at("."):
            raise InvalidName(f"{wanted} has one part, without catalog or database, but here a . follows {name!r}")
        return name

    def part(self, wanted: str) -> str:
        """Take one identifier, which may be in backquotes."""
        if self.ended():
            raise self.unexpected(wanted)
        token = self.tokens[self.position]
        piece = self.text[token.start : token.end]
        if token.kind == "string":
            raise InvalidName(f"{piece} is a string, not {wanted}: names are quoted in backquotes")
        if token.kind == "symbol":
            raise self.unexpected(wanted)
        if token.kind == "quoted":
            piece = piece[1:-1].replace("``", "`")
            if not piece:
                raise InvalidName(f"an empty name is not {wanted}")
        elif _NUMBER.fullmatch(piece):
            raise InvalidName(f"{piece} is a number, not {wanted}: put it in backquotes to use it as a name")
        self.position += 1
        return piece

    def text_or_name(self, wanted: str) -> str:
        """Take a text in quotes, as it stands there, or an identifier."""
        if self.ended() or self.tokens[self.position].kind != "string":
            return self.name(wanted)
        token = self.tokens[self.position]
        self.position += 1
        return self.text[token.start + 1 : token.end - 1]

    def whole_number(self, wanted: str) -> int:
        """Take a number without sign, fraction or exponent."""
        token = None if self.ended() else self.tokens[self.position]
        piece = "" if token is None else self.text[token.start : token.end]
        if not (piece.isascii() and piece.isdigit()):
            raise self.unexpected(wanted)
        self.position += 1
        return int(piece)

    def names(self, wanted: str) -> tuple[str, ...]:
        """Take `(a, b, …)`."""
        self.expect("(")
        found = [self.name(wanted)]
        while self.accept(","):
            found.append(self.name(wanted))
        self.expect(")")
        return tuple(found)

    def alias(self, *stops: str) -> str | None:
        """Take `[AS] alias`, unless one of the stop words comes first."""
        if self.accept("AS"):
            return self.name("an alias")
        if self.ended() or self.tokens[self.position].kind not in ("word", "quoted") or any(self.at(word) for word in stops):
            return None
        return self.name("an alias")

    def until(self, wanted: str, *stops: str) -> str:
        """Take the text up to the next stop word at this level (not within brackets, nor CASE … END), or to the end."""
        stop = self.find(*stops)
        if stop == self.position:
            raise self.unexpected(wanted)
        return self.cut(stop)

    def find(self, *stops: str) -> int:
        """Where the next stop word at this level is, or where the statement ends or the brackets close."""
        if self.ended():
            return self.position
        first = self.tokens[self.position]
        level = first.depth + (first.word in CLOSING)
        cases = 0
        for index in range(self.position, len(self.tokens)):
            token = self.tokens[index]
            if token.depth < level:
                return index
            # after a dot, a keyword is a column
            if token.depth > level or (index and self.tokens[index - 1].word == "."):
                continue
            if cases == 0 and token.word in stops:
                return index
            if token.word == "CASE":
                cases += 1
            elif token.word == "END" and cases:
                cases -= 1
        return len(self.tokens)

    def cut(self, stop: int) -> str:
        """Take the tokens before `stop`: the original text from the first one's start to the last one's end."""
        first, last = self.tokens[self.position], self.tokens[stop - 1]
        self.position = stop
        return self.text[first.start : last.end]
