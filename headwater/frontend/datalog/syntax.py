"""What a Datalog program consists of. Every part knows where it stands in the text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Variable:
    """`X`; each `_` is a variable of its own, without a name."""

    name: str
    at: int


@dataclass(frozen=True)
class Constant:
    """A number, a text, a truth value or nothing."""

    value: int | float | str | bool | None
    at: int


@dataclass(frozen=True)
class Function:
    """`X + 1`, `upper(X)`: an operator or one of Spark's functions."""

    name: str
    arguments: tuple[Term, ...]
    at: int


Term = Variable | Constant | Function


@dataclass(frozen=True)
class Atom:
    """`edge(X, 3)`."""

    predicate: str
    terms: tuple[Term, ...]
    negated: bool
    at: int


@dataclass(frozen=True)
class Comparison:
    """`X < Y + 1`; `X = …` gives X a value if it has none."""

    operator: str
    left: Term
    right: Term
    at: int


@dataclass(frozen=True)
class Aggregate:
    """`min<C>` in the head of a rule; `count<*>` has no term."""

    name: str
    term: Term | None
    at: int


@dataclass(frozen=True)
class Head:
    """What a rule says of which predicate."""

    predicate: str
    terms: tuple[Term | Aggregate, ...]
    at: int


@dataclass(frozen=True)
class Rule:
    """`head :- body.`; a fact has no body."""

    head: Head
    body: tuple[Atom | Comparison, ...]


@dataclass(frozen=True)
class Goal:
    """`?- body.`."""

    body: tuple[Atom | Comparison, ...]
    at: int


@dataclass(frozen=True)
class Program:
    """Rules and questions, in the order of the text."""

    text: str
    rules: tuple[Rule, ...]
    goals: tuple[Goal, ...]
