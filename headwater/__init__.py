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
    ExportFailed,
    ForkedSession,
    HeadwaterError,
    HistoryGone,
    InternalError,
    InvalidName,
    InvalidOption,
    InvalidPipeline,
    InvalidProgram,
    InvalidQuery,
    InvalidRows,
    InvalidSchema,
    InvalidStream,
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
    SchemaChanged,
    SessionClosed,
    StorageFailed,
    StreamFailed,
    UnendedTransaction,
    UnknownEpoch,
    UnknownFormat,
    UnknownName,
    UnreadableCatalog,
    UnrepresentableValue,
    UnsafeSketch,
    ViewCycle,
)

if TYPE_CHECKING:
    from headwater.pipelines.declarative import live_view
    from headwater.pipelines.described import Pipeline, SinkOf, SourceOf, TableOf, ViewOf
    from headwater.session import Session, Sketch, Table, View, connect
    from headwater.sinks.exporting import Export, Retry
    from headwater.sinks.spark_source import register
    from headwater.sources.postgres.capture import release_slot
    from headwater.sources.streams import Progress, Stream

__version__ = "0.1.0"

__all__ = [
    "DamagedFile",
    "DependentViews",
    "DirectoryInUse",
    "DuplicateKey",
    "EvaluationFailed",
    "ExecutorsNotReady",
    "Export",
    "ExportFailed",
    "ForkedSession",
    "HeadwaterError",
    "HistoryGone",
    "InternalError",
    "InvalidName",
    "InvalidOption",
    "InvalidPipeline",
    "InvalidProgram",
    "InvalidQuery",
    "InvalidRows",
    "InvalidSchema",
    "InvalidStream",
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
    "Pipeline",
    "Progress",
    "ProvenanceTooLarge",
    "ReadOnly",
    "RecursionLimit",
    "Retry",
    "SchemaChanged",
    "Session",
    "SessionClosed",
    "SinkOf",
    "Sketch",
    "SourceOf",
    "StorageFailed",
    "Stream",
    "StreamFailed",
    "Table",
    "TableOf",
    "UnendedTransaction",
    "UnknownEpoch",
    "UnknownFormat",
    "UnknownName",
    "UnreadableCatalog",
    "UnrepresentableValue",
    "UnsafeSketch",
    "View",
    "ViewCycle",
    "ViewOf",
    "__version__",
    "connect",
    "live_view",
    "register",
    "release_slot",
]

_LATER = {
    "Export": "headwater.sinks.exporting",
    "Pipeline": "headwater.pipelines.described",
    "Progress": "headwater.sources.streams",
    "Retry": "headwater.sinks.exporting",
    "Session": "headwater.session",
    "SinkOf": "headwater.pipelines.described",
    "Sketch": "headwater.session",
    "SourceOf": "headwater.pipelines.described",
    "Stream": "headwater.sources.streams",
    "Table": "headwater.session",
    "TableOf": "headwater.pipelines.described",
    "View": "headwater.session",
    "ViewOf": "headwater.pipelines.described",
    "connect": "headwater.session",
    "live_view": "headwater.pipelines.declarative",
    "register": "headwater.sinks.spark_source",
    "release_slot": "headwater.sources.postgres.capture",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
