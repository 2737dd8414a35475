r"""Reads the text of a Datalog program.

    program    =  { head "." | head ":-" body "." | "?-" body "." }
    head       =  predicate "(" term or aggregate, … ")"            aggregate  =  min<…> max<…> sum<…> avg<…> count<…>
    body       =  atom | "not" atom | term comparison term, …       comparison =  = != <> < <= > >=
    term       =  sums and products of variables (Upper, _), numbers, texts ("…", '…', lower), true, false, functions (f(…))

`%` and `//` begin a comment. A predicate in backquotes may have any name.
"""

from __future__ import annotations

import re
from math import isinf
from typing import TYPE_CHECKING, NamedTuple

from headwater.errors import InvalidProgram
from headwater.frontend.datalog.syntax import (
    Aggregate,
    Atom,
    Comparison,
    Constant,
    Function,
    Goal,
    Head,
    Program,
    Rule,
    Variable,
)
from headwater.frontend.statements.scanner import place
from headwater.text import is_unicode

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.frontend.datalog.syntax import Term

_TOKEN = re.compile(
    r"""
      (?P<blank>    \s+ | %[^\n]* | //[^\n]* )
    | (?P<number>   \d+ (\.\d+)? ([eE][+-]?\d+)? )
    | (?P<text>     "([^"\\]|\\.)*" | '([^'\\]|\\.)*' )
    | (?P<quoted>   `[^`]+` )
    | (?P<variable> [A-Z_]\w* )
    | (?P<word>     [a-z]\w* )
    | (?P<symbol>   :- | \?- | <= | >= | != | <> | [(),.<>=+\-*/!] )
    """,
    re.VERBOSE,
)
_COMPARISONS = ("=", "!=", "<>", "<=", ">=", "<", ">")
_AGGREGATES = ("min", "max", "sum", "avg", "count")
# Terms within each other are read by calls within calls, of which Python has so many.
_DEEPEST = 100
_DIGITS = 38
_SMALL = ": names of predicates begin with a small letter, or stand in backquotes"
_VALUES: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_ESCAPES = {"n": "\n", "t": "\t"}


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def error_at(text: str, at: int, message: str) -> InvalidProgram:
    """An error that says where in the program it is."""
    return InvalidProgram(f"{place(text, at)}: {message}")


def read_program(text: str) -> Program:
    """The program that a text is."""
    return _Reader(text).program()


def _tokens(text: str) -> list[_Token]:
    if not isinstance(text, str):
        raise InvalidProgram(f"a program is text, not {type(text).__name__}")
    if not is_unicode(text):
        raise InvalidProgram("the program has half of a surrogate pair in it, which is no character")
    found = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            unfinished = "this text does not end" if text[at] in "\"'" else f"{text[at]!r} means nothing here"
            raise error_at(text, at, unfinished)
        if match.lastgroup != "blank":
            found.append(_Token(match.lastgroup, match.group(), at))
        at = match.end()
    return [*found, _Token("end", "", len(text))]


class _Reader:
    """Reads forward; every method that does not find what it needs says what it expected."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._position = 0
        self._level = 0
        self._depths: dict[int, int] = {}

    def program(self) -> Program:
        rules: list[Rule] = []
        goals: list[Goal] = []
        while self._next.kind != "end":
            at = self._next.at
            if self._accept("?-"):
                goals.append(Goal(self._body(), at))
            else:
                head = self._head()
                rules.append(Rule(head, self._body() if self._accept(":-") else ()))
            self._expect(".", "a . at the end of a rule")
        return Program(self._text, tuple(rules), tuple(goals))

    # -- parts

    def _head(self) -> Head:
        token = self._next
        predicate = self._predicate()
        self._expect("(", f"( and the columns of {predicate!r}")
        terms: list[Term | Aggregate] = [self._head_term()]
        while self._accept(","):
            terms.append(self._head_term())
        self._expect(")", "a , or )")
        return Head(predicate, tuple(terms), token.at)

    def _head_term(self) -> Term | Aggregate:
        token = self._next
        if token.kind == "word" and token.text in _AGGREGATES and self._tokens[self._position + 1].text == "<":
            self._position += 2
            term = None if token.text == "count" and self._accept("*") else self._term()
            self._expect(">", f"> at the end of {token.text}<…")
            return Aggregate(token.text, term, token.at)
        return self._term()

    def _body(self) -> tuple[Atom | Comparison, ...]:
        literals = [self._literal()]
        while self._accept(","):
            literals.append(self._literal())
        return tuple(literals)

    def _literal(self) -> Atom | Comparison:
        token = self._next
        following = self._tokens[self._position + 1]
        if self._accept("!") or (token.text == "not" and following.kind in ("word", "quoted") and self._accept("not")):
            return self._atom(negated=True)
        if token.kind == "quoted" or (token.kind == "word" and following.text == "("):
            start = self._position
            atom = self._atom(negated=False)
            if self._next.text in (",", ".", ""):
                return atom
            # Something follows: it was a function in a comparison.
            self._position = start
        left = self._term()
        operator = self._next
        if operator.text not in _COMPARISONS:
            small = operator.text == "(" and isinstance(left, Variable)
            raise self._unexpected(f"a comparison, or a predicate with its columns{_SMALL if small else ''}")
        self._position += 1
        return Comparison("!=" if operator.text == "<>" else operator.text, left, self._term(), token.at)

    def _atom(self, *, negated: bool) -> Atom:
        token = self._next
        predicate = self._predicate()
        self._expect("(", f"( and the columns of {predicate!r}")
        terms = [self._term()]
        while self._accept(","):
            terms.append(self._term())
        self._expect(")", "a , or )")
        return Atom(predicate, tuple(terms), negated, token.at)

    def _predicate(self) -> str:
        token = self._next
        if token.kind not in ("word", "quoted"):
            raise self._unexpected(f"a predicate{_SMALL if token.kind == 'variable' else ''}")
        self._position += 1
        return token.text.strip("`")

    # -- terms

    def _term(self) -> Term:
        return self._chain(("+", "-"), lambda: self._chain(("*", "/"), self._factor))

    def _chain(self, operators: tuple[str, ...], part: Callable[[], Term]) -> Term:
        term = part()
        while self._next.text in operators and self._next.kind == "symbol":
            token = self._next
            self._position += 1
            term = self._function(token, (term, part()))
        return term

    def _function(self, token: _Token, arguments: tuple[Term, ...]) -> Function:
        depth = 1 + max((self._depths.get(id(argument), 0) for argument in arguments), default=0)
        if depth > _DEEPEST:
            raise self._too_deep(token)
        made = Function(token.text, arguments, token.at)
        self._depths[id(made)] = depth
        return made

    def _too_deep(self, token: _Token) -> InvalidProgram:
        return error_at(self._text, token.at, f"terms within each other, more than {_DEEPEST} deep; compute some of them first")

    def _factor(self) -> Term:
        self._level += 1
        if self._level > _DEEPEST:
            raise self._too_deep(self._next)
        term = self._simple()
        self._level -= 1
        return term

    def _simple(self) -> Term:  # noqa: PLR0911  (one case a kind)
        token = self._next
        self._position += 1
        match token.kind:
            case "variable":
                return Variable(token.text, token.at)
            case "number":
                return Constant(self._number(token), token.at)
            case "text":
                inner = re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), token.text[1:-1], flags=re.DOTALL)
                return Constant(inner, token.at)
            case "word":
                return self._named(token)
        if token.text == "-":
            inside = self._factor()
            if isinstance(inside, Constant) and isinstance(inside.value, int | float):
                return Constant(-inside.value, token.at)
            return self._function(token, (inside,))
        if token.text == "(":
            term = self._term()
            self._expect(")", ")")
            return term
        self._position -= 1
        raise self._unexpected("a variable, a number, a text or a function")

    def _number(self, token: _Token) -> int | float:
        if re.search("[.eE]", token.text):
            real = float(token.text)
            if isinf(real):
                raise error_at(self._text, token.at, f"{token.text:.50} is no DOUBLE: it is too large")
            return real
        if len(token.text) > _DIGITS:
            raise error_at(self._text, token.at, f"a number of {len(token.text)} digits; there may be {_DIGITS}")
        return int(token.text)

    def _named(self, token: _Token) -> Term:
        if self._accept("("):
            arguments = [] if self._next.text == ")" else [self._term()]
            while self._accept(","):
                arguments.append(self._term())
            self._expect(")", "a , or )")
            return self._function(token, tuple(arguments))
        return Constant(_VALUES.get(token.text, token.text), token.at)

    # -- tokens

    @property
    def _next(self) -> _Token:
        return self._tokens[self._position]

    def _accept(self, text: str) -> bool:
        found = self._next.text == text and self._next.kind in ("symbol", "word")
        self._position += found
        return found

    def _expect(self, text: str, wanted: str) -> None:
        if not self._accept(text):
            raise self._unexpected(wanted)

    def _unexpected(self, wanted: str) -> InvalidProgram:
        token = self._next
        there = "the program ends" if token.kind == "end" else f"there is {token.text!r}"
        return error_at(self._text, token.at, f"expected {wanted}, but {there}")
