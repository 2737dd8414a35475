"""Runs Datalog programs on a session: facts become tables, rules live views, and questions are answered."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.errors import (
    EvaluationFailed,
    HeadwaterError,
    InvalidQuery,
    NotStratified,
    NotSupported,
    RecursionLimit,
    UnknownName,
)
from headwater.frontend.datalog import read_program, translated
from headwater.frontend.statements.scanner import place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from headwater.answers import Answer
    from headwater.frontend.datalog import Question
    from headwater.relations import Table, View
    from headwater.session import Session


@dataclass(frozen=True)
class Program:
    """What a program defined, by the names of its predicates, and what it was answered."""

    tables: Mapping[str, Table]
    views: Mapping[str, View]
    answers: tuple[Answer, ...]


def run(session: Session, text: str) -> Program:
    """Defines everything, or nothing if a part is refused."""
    program = read_program(text)
    known = {entry.name: tuple(entry.arrow.names) for entry in session.snapshot.catalog.shown.values()}
    stated, defined, questions = translated(program, known)
    tables: dict[str, Table] = {}
    views: dict[str, View] = {}
    try:
        for facts in stated:
            tables[facts.name] = session.create_table(facts.name, facts.columns)
            session.insert(facts.name, list(facts.rows))
        for predicate in defined:
            with _placed(f"{place(text, predicate.at)}, the rules of {predicate.name!r}"):
                views[predicate.name] = session.create_view(predicate.name, predicate.query)
        answers = tuple(_answer(session, question, text) for question in questions)
    except HeadwaterError:
        for name in reversed(views):
            session.drop_view(name)
        for name in tables:
            session.drop_table(name)
        raise
    return Program(tables, views, answers)


def _answer(session: Session, question: Question, text: str) -> Answer:
    with _placed(f"{place(text, question.at)}, the question"):
        return session.answer(question.query)


@contextmanager
def _placed(where: str) -> Iterator[None]:
    """Says of an error which part of the program it is about."""
    try:
        yield
    except (EvaluationFailed, InvalidQuery, NotStratified, NotSupported, RecursionLimit, UnknownName) as error:
        said = str(error).removeprefix(f"[{error.code}] ")
        raise type(error)(f"{where}: {said}") from error
