"""Settings of a Spark session that change what a query means, and who takes them into account.

A view means what its query meant under the settings of the session when it was created, as views of Spark's own catalog do:
later changes of a setting are for later queries. The settings stand in the `Reading` of a query, so that it is read again, and
recomputed, under the same ones, also by a later process.

Most of the meaning is in the plan that Catalyst analysed. But many functions look a setting up while they run, and which of
them do is known to Spark alone. So a call that was read under an unusual setting says so, and Spark evaluates it, in a session
with that setting; unless the call's own options tell all of it, as they do for `spark.sql.ansi.enabled`.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from headwater.algebra.expressions import Call, Expression

    Settings = tuple[tuple[str, str], ...]

TIME_ZONE = "spark.sql.session.timeZone"
# How a query is run, where its rows lie, and what people see of it; never what it answers.
_HOW = (
    *("adaptive", "artifact", "autoBroadcastJoinThreshold", "avro", "broadcastTimeout", "cache", "catalog", "cbo", "codegen"),
    *("columnVector", "constraintPropagation", "cteRecursion", "debug", "defaultCatalog", "defaultSizeInBytes", "event"),
    *("exchange", "execution.arrow", "execution.pandas", "execution.sort", "execution.useObjectHash", "extensions", "files"),
    *("filesource", "hive", "inMemory", "join", "leafNode", "limit", "maxBroadcastTableSize", "maxMetadata", "maxPlan"),
    *("maxToStringFields", "metadataCache", "optimizer", "orc", "parquet", "planChangeLog", "planner", "pyspark", "queryEx"),
    *("redaction", "repl", "requireAllCluster", "shuffle", "sort", "sortMerge", "sources", "statistics", "streaming"),
    *("subexpressionElimination", "subqueryBroadcast", "thriftserver", "thriftServer", "ui", "warehouse", "window.group"),
)
# What only the analysis of a query asks for, so that its plan has all of it.
_ANALYSED = frozenset(
    f"spark.sql.{name}"
    for name in (
        *("caseSensitive", "crossJoin.enabled", "decimalOperations.allowPrecisionLoss", "groupByAliases", "groupByOrdinal"),
        *("orderByOrdinal", "parser.quotedRegexColumnNames", "storeAssignmentPolicy", "timestampType", "variable.substitute"),
        *("ansi.doubleQuotedIdentifiers", "ansi.enforceReservedKeywords", "ansi.relationPrecedence"),
        *("legacy.setopsPrecedence.enabled", "sources.default"),
    )
)
# What the calls themselves say in their options, which all who evaluate them heed.
_IN_OPTIONS = frozenset({"spark.sql.ansi.enabled", "spark.sql.legacy.sizeOfNull"})


def settings_of(spark: SparkSession) -> Settings:
    """The settings of a session that change what queries mean and are not as Spark has them; its time zone is apart."""
    between = "\x00"
    stated: str = spark._jsparkSession.sessionState().conf().getAllConfs().mkString(between)  # noqa: SLF001  (py4j)
    pairs = (pair.partition(" -> ") for pair in stated.split(between) if pair.startswith("spark.sql."))
    jvm = spark._jvm  # noqa: SLF001
    return tuple(sorted((name, value) for name, _, value in pairs if _matters(name) and value != _usual(jvm, name)))


def set_to(session: SparkSession, settings: Settings) -> None:
    """Gives a session of our own these settings, and else those that Spark has."""
    for name, _ in settings_of(session):
        session.conf.unset(name)
    for name, value in settings:
        session.conf.set(name, value)


def asked_while_running(settings: Settings) -> Settings:
    """Those that functions may look up while they run."""
    return tuple((name, value) for name, value in settings if name not in _ANALYSED)


def settings_for(expressions: Iterable[Expression]) -> Settings:
    """Those under which the expressions are evaluated."""
    for expression in expressions:
        stated = None if not hasattr(expression, "option") else expression.option("settings")
        if stated is not None:
            return tuple((name, value) for name, value in json.loads(stated))
    return ()


def only_spark_knows(call: Call) -> str | None:
    """Why a call cannot be evaluated by anyone but Spark; None if its function and options tell everything."""
    if call.option("collation") is not None:
        return "under a collation"
    unusual = [name for name, _ in settings_for([call]) if name not in _IN_OPTIONS]
    return f"under the setting {unusual[0]}" if unusual else None


def _matters(name: str) -> bool:
    return name != TIME_ZONE and not name.removeprefix("spark.sql.").startswith(_HOW)


@cache
def _usual(jvm: Any, name: str) -> str | None:  # noqa: ANN401  (py4j)
    """What Spark has for a setting that nobody sets; None if it has nothing, or knows no such setting."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return str(jvm.org.apache.spark.sql.internal.SQLConf().getConfString(name))
    except (Py4JJavaError, PySparkException):
        return None
