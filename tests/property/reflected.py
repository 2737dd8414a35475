"""What the installed Spark has, by reflection: its functions with the examples of their documentation, and its plan operators.

An example such as

    SELECT max_by(x, y) FROM VALUES ('a', 10), ('b', 50) AS tab(x, y)

is a live view, once the rows after VALUES are those of a table: the types of its arguments are right by construction, also for
functions that a later version brings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pyspark
from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

GROUPS = ("agg_funcs", "window_funcs", "generator_funcs")
LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"
FAMILIES = ("Command", "ParsedStatement", "LeafNode")
JARS = ("spark-catalyst_", "spark-sql_", "spark-hive_")
_OPERATOR = re.compile(r"/(plans/logical|analysis|execution|hive)/[^$]*\.class$")
_VALUES = re.compile(r"VALUES\s+(.+?)\s+(?:AS\s+)?(\w+)\s*\((\s*\w+(?:\s*,\s*\w+)*\s*)\)", re.DOTALL)


@dataclass(frozen=True)
class Function:
    """A function by its name, the class of Catalyst that it is, and the queries of its documentation."""

    name: str
    kind: str
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Inputs:
    """A query over constant rows, taken apart: the query with tables instead, and their columns and rows as SQL."""

    text: str
    tables: tuple[tuple[str, str, tuple[str, ...]], ...]

    def query(self, rows: Sequence[Sequence[str]]) -> str:
        """The query over other constant rows."""
        text = self.text
        for (name, columns, _), kept in zip(self.tables, rows, strict=True):
            text = text.replace(f"{name} AS", f"VALUES {', '.join(kept)} AS").replace(f"tab_{name}", f"tab_{name}({columns})")
        return text


def functions(spark: SparkSession) -> list[Function]:
    """Every aggregate, window and generator function of Spark's, by name, and every one that may stand in FROM."""
    state = spark._jsparkSession.sessionState()
    found = {}
    for registry, every in ((state.functionRegistry(), False), (state.tableFunctionRegistry(), True)):
        names = registry.listFunction()
        for i in range(names.size()):
            info = registry.lookupFunction(names.apply(i)).get()
            if info.getSource() == "built-in" and (every or info.getGroup() in GROUPS):
                name = names.apply(i).funcName()
                found[name] = Function(name, info.getClassName().rsplit(".", 1)[-1], tuple(_queries(info.getExamples())))
    return [found[name] for name in sorted(found)]


def _queries(examples: str) -> Iterator[str]:
    """The queries of a text in which each starts with `>` and ends with a semicolon."""
    for part in re.findall(r"^\s*> (.+?);\s*$", examples or "", re.MULTILINE | re.DOTALL):
        yield re.sub(r"\s+", " ", part)


def taken_apart(query: str, prefix: str) -> Inputs | None:
    """A query with tables in place of constant rows; None if it has none."""
    tables: list[tuple[str, str, tuple[str, ...]]] = []

    def table(match: re.Match[str]) -> str:
        name = f"{prefix}_{len(tables)}"
        tables.append((name, match[3], tuple(_split(match[1]))))
        # What follows may name the columns by the alias that it had.
        return f"{name} AS tab_{name}"

    text = _VALUES.sub(table, query)
    for match in _VALUES.finditer(query):
        text = re.sub(rf"\b{match[2]}\.", "", text)
    return Inputs(text, tuple(tables)) if tables else None


def _split(rows: str) -> Iterator[str]:
    """Rows at the commas that stand in no parentheses and in no text."""
    depth, start, quoted = 0, 0, False
    for place, character in enumerate(rows):
        quoted ^= character == "'"
        depth += 0 if quoted else (character in "([{<") - (character in ")]}>")
        if character == "," and not depth and not quoted:
            yield rows[start:place].strip()
            start = place + 1
    yield rows[start:].strip()


def operators(spark: SparkSession) -> dict[str, set[str]]:
    """Every logical operator that is no abstract class, by the name of its class, and the families that it is of."""
    jvm: Any = spark._jvm
    load = jvm.java.lang.Class.forName
    root = jvm.org.apache.spark.util.Utils.classForName(f"{LOGICAL}.LogicalPlan", False, False)  # noqa: FBT003  (py4j)
    loader = root.getClassLoader()
    families = {name: load(f"{LOGICAL}.{name}", False, loader) for name in FAMILIES}  # noqa: FBT003
    found = {}
    for name in _classes():
        try:
            kind = load(name, False, loader)  # noqa: FBT003
        except Py4JJavaError:
            # It needs a library that is not there, so Spark cannot have it in a plan either.
            continue
        if root.isAssignableFrom(kind) and not kind.getModifiers() & _ABSTRACT:
            found[name] = {family for family, parent in families.items() if parent.isAssignableFrom(kind)}
    return found


def fields_of(spark: SparkSession, name: str) -> list[str]:
    """What a case class of Catalyst's is made of: its first fields that are no lazy values, as many as its `copy` takes."""
    jvm: Any = spark._jvm
    kind = jvm.org.apache.spark.util.Utils.classForName(name, False, False)  # noqa: FBT003
    count = len({method.getName() for method in kind.getMethods() if method.getName().startswith("copy$default$")})
    return [field.getName() for field in kind.getDeclaredFields() if field.getModifiers() & _FINAL][:count]


_ABSTRACT = 0x400
_FINAL = 0x10


def _classes() -> Iterator[str]:
    """The classes in Spark's jars in whose packages operators are."""
    for jar in sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar")):
        if jar.name.startswith(JARS):
            for entry in ZipFile(jar).namelist():
                if _OPERATOR.search(entry):
                    yield entry.removesuffix(".class").replace("/", ".")
