"""Everything that can go wrong for a user: one class a kind, each with a stable `code`, the facts and the way out.

Raising any of these leaves the epoch and every view as they were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from headwater.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Sequence


class HeadwaterError(Exception):
    """Base of all errors; `code` is stable across releases, the message is for people, and has no password in it."""

    code: ClassVar[str] = "ERROR"

    def __init__(self, message: str) -> None:
        super().__init__(f"[{self.code}] {redacted(message)}")


class InternalError(HeadwaterError):
    """A defect of Headwater: something failed that should not, or not so. The error itself is the cause of this one."""

    code = "INTERNAL_ERROR"


class UnknownName(HeadwaterError):
    """A table, view, column or function that does not exist."""

    code = "UNKNOWN_NAME"


class NameTaken(HeadwaterError):
    """A table or view of that name exists already."""

    code = "NAME_TAKEN"


class InvalidName(HeadwaterError):
    """A name that no table, view, stream or export can have."""

    code = "INVALID_NAME"


class InvalidQuery(HeadwaterError):
    """Spark does not accept the query: syntax, types, arity."""

    code = "INVALID_QUERY"


class InvalidSchema(HeadwaterError):
    """A table definition that cannot be used."""

    code = "INVALID_SCHEMA"


class InvalidRows(HeadwaterError):
    """Rows that do not fit the table they are meant for."""

    code = "INVALID_ROWS"


class UnrepresentableValue(HeadwaterError):
    """Values of an answer that Python or pandas does not have: years outside 1 to 9999, text that is no UTF-8."""

    code = "UNREPRESENTABLE_VALUE"


class NullKey(HeadwaterError):
    """A NULL in a column of a table's key."""

    code = "NULL_KEY"


class DuplicateKey(HeadwaterError):
    """An insert of a key that the table, or the same batch, has already."""

    code = "DUPLICATE_KEY"


class MissingRow(HeadwaterError):
    """A delete of a row, or of more copies of it, than the table has."""

    code = "MISSING_ROW"


class MissingKey(HeadwaterError):
    """An operation that needs a key on a table that has none."""

    code = "MISSING_KEY"


class InvalidTransaction(HeadwaterError):
    """A change beside an open transaction of the same thread, or through one that has ended."""

    code = "INVALID_TRANSACTION"


class NonDeterministic(HeadwaterError):
    """A query whose answer is not a function of the tables."""

    code = "NON_DETERMINISTIC"


class UnsafeSketch(HeadwaterError):
    """A sketch that would change the answer of its query: by which table and columns, at which operator, and why."""

    code = "UNSAFE_SKETCH"

    def __init__(self, table: str, columns: Sequence[str], operator: str, reason: str) -> None:
        by = f" by {', '.join(columns)}" if columns else ""
        super().__init__(
            f"table {table!r} cannot be sketched{by} for this query, at {operator}: {reason}. "
            "Take a column that the query groups by, or leave the table out"
        )
        self.operator = operator
        self.reason = reason


class NotIncremental(HeadwaterError):
    """A view asked to be incremental that has a part which must be recomputed."""

    code = "NOT_INCREMENTAL"


class NotSupported(HeadwaterError):
    """Something that Headwater cannot do yet."""

    code = "NOT_SUPPORTED"


class NotExplained(HeadwaterError):
    """A row whose derivation cannot be told: it is not there, or is there though it was asked why not, or Spark alone knows."""

    code = "NOT_EXPLAINED"


class ProvenanceTooLarge(HeadwaterError):
    """Rows with so many alternative derivations that their provenance cannot be held, or enumerated."""

    code = "PROVENANCE_TOO_LARGE"


class DependentViews(HeadwaterError):
    """A drop or replace that would break views on top."""

    code = "DEPENDENT_VIEWS"


class ViewCycle(HeadwaterError):
    """A view that would read itself."""

    code = "VIEW_CYCLE"


class EvaluationFailed(HeadwaterError):
    """An expression failed on the data: division by zero, overflow, a UDF that raised."""

    code = "EVALUATION_FAILED"


class LostQuery(HeadwaterError):
    """A query of an earlier session that Spark does not read as it did then: a function is gone, or the version is another."""

    code = "LOST_QUERY"


class UnreadableCatalog(HeadwaterError):
    """A stored catalog that this version of Headwater does not understand."""

    code = "UNREADABLE_CATALOG"


class HistoryGone(HeadwaterError):
    """Changes of a view that are longer ago than changes are kept."""

    code = "HISTORY_GONE"


class UnknownEpoch(HeadwaterError):
    """An epoch that has not come yet, or at which a table or view was not there."""

    code = "UNKNOWN_EPOCH"


class SessionClosed(HeadwaterError):
    """The session was closed."""

    code = "SESSION_CLOSED"


class ForkedSession(HeadwaterError):
    """A session used in a fork of the process that opened it."""

    code = "FORKED_SESSION"


class InvalidPipeline(HeadwaterError):
    """A description of a pipeline that cannot be read, or to which there is no way from what there is."""

    code = "INVALID_PIPELINE"


class InvalidStream(HeadwaterError):
    """A stream that no table can follow: it is none, or nothing says what its rows do."""

    code = "INVALID_STREAM"


class UnendedTransaction(HeadwaterError):
    """A transaction of a source whose end did not come, with more changes after it than can wait."""

    code = "UNENDED_TRANSACTION"


class SchemaChanged(HeadwaterError):
    """A source whose columns are not those of its table any more, in a way that nobody can bridge."""

    code = "SCHEMA_CHANGED"


class StreamFailed(HeadwaterError):
    """A stream that does not go on: because of an error, or because it was stopped."""

    code = "STREAM_FAILED"


class ExportFailed(HeadwaterError):
    """An export of a view that does not go on: its target refused, or it was stopped."""

    code = "EXPORT_FAILED"


class InvalidOption(HeadwaterError):
    """An argument that is none of those that are possible."""

    code = "INVALID_OPTION"


class DirectoryInUse(HeadwaterError):
    """A directory that another writer holds, or that another one has taken over."""

    code = "DIRECTORY_IN_USE"


class UnknownFormat(HeadwaterError):
    """A directory that is not ours, or that a newer release has written."""

    code = "UNKNOWN_FORMAT"


class StorageFailed(HeadwaterError):
    """The disk refused: full, not writable, gone."""

    code = "STORAGE_FAILED"


class DamagedFile(HeadwaterError):
    """A file that is missing or is not what was written, from one byte to another, or to its end."""

    code = "DAMAGED_FILE"

    def __init__(self, file: str, what: str, affected: str = "", *, start: int = 0, stop: int | None = None) -> None:
        super().__init__(f"the file {file!r} is damaged: {what}{affected}")
        self.file = file
        self.what = what
        self.start = start
        self.stop = stop


class ExecutorsNotReady(HeadwaterError):
    """Executors that lack this version of the package, or something it needs, or cannot reach the directory."""

    code = "EXECUTORS_NOT_READY"

    def __init__(self, facts: str, ways_out: Sequence[str]) -> None:
        super().__init__(f"executors cannot run epochs: {facts}; {'; '.join(ways_out)}; or set the placement to driver")


class JobFailed(HeadwaterError):
    """A job on the executors that Spark gave up."""

    code = "JOB_FAILED"


class LostState(HeadwaterError):
    """A table or view whose state was in a damaged file."""

    code = "LOST_STATE"


class InvalidTarget(HeadwaterError):
    """A place that a backup, what is restored from one, or an export cannot go to."""

    code = "INVALID_TARGET"


class ReadOnly(HeadwaterError):
    """A change through a session that only reads."""

    code = "READ_ONLY"


class NotStratified(HeadwaterError):
    """A relation would depend on its own absence, or on a sum over itself."""

    code = "NOT_STRATIFIED"


class RecursionLimit(HeadwaterError):
    """A recursion did not end within its limits."""

    code = "RECURSION_LIMIT"


class InvalidProgram(HeadwaterError):
    """A Datalog program that cannot be read, or whose rules make no sense."""

    code = "INVALID_PROGRAM"
