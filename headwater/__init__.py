"""Headwater keeps the answers of Spark queries up to date: exact live views over tables that change.

Importing this package is quick and starts nothing: each name is fetched from its module at its first use (PEP 562).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from headwater.errors import (
    DamagedFile,
    DependentViews,
    DirectoryInUse,
    DuplicateKey,
    EvaluationFailed,
    ExecutorsNotReady,
    HeadwaterError,
    HistoryGone,
    InvalidName,
    InvalidOption,
    InvalidProgram,
    InvalidQuery,
    InvalidRows,
    InvalidSchema,
    InvalidTarget,
    InvalidTransaction,
    JobFailed,
    LostQuery,
    LostState,
    MissingKey,
    MissingRow,
    NameTaken,
    NonDeterministic,
    NotExplained,
    NotIncremental,
    NotStratified,
    NotSupported,
    NullKey,
    ProvenanceTooLarge,
    ReadOnly,
    RecursionLimit,
    SessionClosed,
    StorageFailed,
    UnknownEpoch,
    UnknownFormat,
    UnknownName,
    UnreadableCatalog,
    UnsafeSketch,
    ViewCycle,
)

if TYPE_CHECKING:
    from headwater.session import Session, Sketch, Table, View, connect

__version__ = "0.1.0"

__all__ = [
    "DamagedFile",
    "DependentViews",
    "DirectoryInUse",
    "DuplicateKey",
    "EvaluationFailed",
    "ExecutorsNotReady",
    "HeadwaterError",
    "HistoryGone",
    "InvalidName",
    "InvalidOption",
    "InvalidProgram",
    "InvalidQuery",
    "InvalidRows",
    "InvalidSchema",
    "InvalidTarget",
    "InvalidTransaction",
    "JobFailed",
    "LostQuery",
    "LostState",
    "MissingKey",
    "MissingRow",
    "NameTaken",
    "NonDeterministic",
    "NotExplained",
    "NotIncremental",
    "NotStratified",
    "NotSupported",
    "NullKey",
    "ProvenanceTooLarge",
    "ReadOnly",
    "RecursionLimit",
    "Session",
    "SessionClosed",
    "Sketch",
    "StorageFailed",
    "Table",
    "UnknownEpoch",
    "UnknownFormat",
    "UnknownName",
    "UnreadableCatalog",
    "UnsafeSketch",
    "View",
    "ViewCycle",
    "__version__",
    "connect",
]

_LATER = {"Session", "Sketch", "Table", "View", "connect"}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("headwater.session"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
