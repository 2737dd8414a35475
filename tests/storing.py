"""Catalogs that go through JSON: each step must give the same as before, and come to the same state."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from headwater.compiler.dataflow import in_order
from headwater.delta import Delta
from headwater.engine import Engine
from headwater.runtime.driver import run_epoch
from headwater.runtime.transactions import Staging
from headwater.state.consolidation import consolidate
from headwater.store.catalogs import decode_catalog, encode_catalog
from headwater.transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import headwater as hw
    from headwater.compiler.dataflow import Step
    from headwater.operators.operator import State
    from headwater.runtime.catalog import Catalog, Snapshot


def engine_of(session: hw.Session) -> Engine:
    """An engine that knows nothing of what the session has read."""
    return Engine(lambda: session.spark, "UTC")


def stored(catalog: Catalog, engine: Engine) -> Catalog:
    """The catalog as another process would have it."""
    text = json.dumps(encode_catalog(catalog, "UTC"))
    found = decode_catalog(json.loads(text), engine)
    assert json.dumps(encode_catalog(found, "UTC")) == text
    return found


def attached(catalog: Catalog, snapshot: Snapshot) -> dict[Step, State]:
    """The states of a snapshot for the steps of a catalog that was made from its own."""
    return {step: snapshot.states[old] for step, old in zip(catalog.steps, snapshot.catalog.steps, strict=True)}


def copy_as_crashed(session: hw.Session, directory: Path, copy: Path) -> None:
    """What a directory would be if the process died now; nothing is folded meanwhile."""
    with session.epochs.journal.defining():
        shutil.copytree(directory, copy, ignore=shutil.ignore_patterns("*lease*"))


def changed(session: hw.Session, change: Callable[[Transaction], None]) -> Mapping[str, Delta]:
    """What a transaction would change."""
    transaction = Transaction(session, Staging(session.snapshot))
    change(transaction)
    return transaction.end()[0]


def require_same_epoch(snapshot: Snapshot, again: Catalog, changes: Mapping[str, Delta]) -> None:
    """Runs the changes through both dataflows."""
    outcomes = []
    for catalog, states in ((snapshot.catalog, snapshot.states), (again, attached(again, snapshot))):
        sources = {catalog.tables[name].source: delta for name, delta in changes.items()}
        outcomes.append(run_epoch(catalog.above(sources), states, sources))
    old, new = outcomes
    differ = set()
    for before, after in zip(snapshot.catalog.steps, again.steps, strict=True):
        gives = [outcome.outputs.get(step, step.nothing) for outcome, step in ((old, before), (new, after))]
        kept = [outcome.states.get(step, ()) for outcome, step in ((old, before), (new, after))]
        if len(consolidate(Delta.concat([gives[0], -gives[1]]))) or len(kept[0]) != len(kept[1]):
            differ.add(before)
        if any(len(one.difference(other)) for one, other in zip(*kept, strict=False)):
            differ.add(before)
    views = {
        name: [step.label for step in in_order([view.contents]) if step in differ] for name, view in snapshot.views.items()
    }
    assert {name: labels for name, labels in views.items() if labels} == {}
