"""A transaction, as users hold it: changes of tables, one after the other, that become one epoch or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.boundary import bounded
from headwater.delta import Delta
from headwater.errors import InvalidTransaction
from headwater.runtime.outside import Content
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.answers import Answer
    from headwater.compiler.dataflow import Step
    from headwater.operators.operator import State
    from headwater.runtime.catalog import TableEntry
    from headwater.runtime.outside import Outside
    from headwater.runtime.transactions import Staging
    from headwater.session import Session


@bounded
class Transaction:
    """Changes that are committed together."""

    def __init__(self, session: Session, staging: Staging) -> None:
        self._session = session
        self._open: Staging | None = staging
        self.epoch: int | None = None
        """The number of the epoch that it became."""
        self.positions: Mapping[str, Any] | None = None
        """How far all streams are applied by this transaction, if it moves one of them."""

    def insert(self, table: str, rows: object) -> None:
        entry = self._session.table_entry(table)
        self.staging.insert(entry, self._session.rows_for(entry, rows))

    def delete(self, table: str, rows: object) -> None:
        entry = self._session.table_entry(table)
        self.staging.delete(entry, self._session.rows_for(entry, rows))

    def upsert(self, table: str, rows: object) -> None:
        entry = self._session.table_entry(table)
        self.staging.upsert(entry, self._session.rows_for(entry, rows))

    def replace(self, table: str, old: object, new: object) -> None:
        """Removes rows and adds others in their place."""
        entry = self._session.table_entry(table)
        self.staging.replace(entry, self._session.rows_for(entry, old), self._session.rows_for(entry, new))

    def become(self, table: TableEntry, new: Outside) -> None:
        """Gives a table other rows, for those it has."""
        kept = self.staging.kept(table)
        delta = self._session.executors.difference(table, kept, new)
        if delta is None:
            content = kept.contents() if table.attached is None else Content(table.attached, kept).delta()
            delta = consolidate(Delta.concat([Delta.inserting(new.rows()), -content]))
        self.staging.change(table, delta)

    def sql(self, text: str) -> None:
        """Runs INSERT, UPDATE, DELETE or MERGE; it sees what the transaction has changed so far."""
        from headwater.frontend.statements import parse
        from headwater.statements import Runner

        Runner(self._session).change(parse(text), self)

    def answer(self, text: str) -> Answer:
        """The answer of a query that sees what the transaction has changed so far."""
        return self._session.answer(text, self.staging.content)

    def end(self) -> tuple[Mapping[str, Delta], Mapping[Step, State]]:
        """The net change of each table, and the new states that are known already."""
        return self.staging.net()

    def close(self) -> None:
        """Nothing can be added afterwards."""
        self._open = None

    @property
    def staging(self) -> Staging:
        """The tables as they will be."""
        if self._open is None:
            raise InvalidTransaction("the transaction has ended; begin another one")
        return self._open
