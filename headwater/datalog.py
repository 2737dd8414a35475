"""Runs Datalog programs on a session: facts become tables, rules live views, and questions are answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError, InvalidQuery, NotStratified, NotSupported, UnknownName
from headwater.frontend.datalog import read_program, translated
from headwater.frontend.statements.scanner import place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.answers import Answer
    from headwater.frontend.datalog import Defined
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
            views[predicate.name] = _view(session, predicate, text)
        answers = tuple(session.answer(question.query) for question in questions)
    except HeadwaterError:
        for name in reversed(views):
            session.drop_view(name)
        for name in tables:
            session.drop_table(name)
        raise
    return Program(tables, views, answers)


def _view(session: Session, predicate: Defined, text: str) -> View:
    try:
        return session.create_view(predicate.name, predicate.query)
    except (InvalidQuery, UnknownName, NotStratified, NotSupported) as error:
        said = str(error).removeprefix(f"[{error.code}] ")
        raise type(error)(f"{place(text, predicate.at)}, the rules of {predicate.name!r}: {said}") from error
