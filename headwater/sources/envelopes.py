"""Debezium's messages about several tables, as one stream: envelopes of changes, and the ends of transactions among them.

    change   op, before, after, source {db, schema, table}, transaction {id, total_order}
    end      status END, id, event_count, data_collections [{data_collection, event_count}]

They come as the text of messages, `value`, with or without `payload`, or in columns of these names with the rows as JSON. What
is made of them has for each table the rows in its types, and the rest as it was told. A table is meant by its full name, or by
what that ends with: `orders` and `public.orders` both mean `shop.public.orders`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.errors import InvalidStream
from headwater.sources.postgres import captured

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import Column, DataFrame

    from headwater.runtime.catalog import TableEntry

UNREAD = "_unread"
# Of PostgreSQL, the name of a transaction is followed by a place in the log, which is another one for each of its changes.
_POSITIONED = (r"^(\d+):\d+$", "$1")
_END = "status:string,id:string,event_count:bigint,data_collections:array<struct<data_collection:string,event_count:bigint>>"
_PARTS = {
    "op": "string",
    "before": "string",
    "after": "string",
    "source": "struct<db:string,schema:string,table:string,lsn:bigint,ts_ms:bigint>",
    "transaction": "struct<id:string,total_order:bigint>",
    **dict(part.split(":", 1) for part in _END.split(",", 3)),
}


def means(name: str, key: str) -> bool:
    """Whether a name from the source is that of the table that users call so."""
    return name == key or name.endswith(f".{key}")


def target_of(name: str | None, keys: Iterable[str]) -> int:
    """The number of the table that is meant; −1 for none."""
    return next((i for i, key in enumerate(keys) if name is not None and means(name, key)), -1)


def before(i: int) -> str:
    return f"before_{i}"


def after(i: int) -> str:
    return f"after_{i}"


def normalised(frame: DataFrame, tables: Mapping[str, TableEntry]) -> DataFrame:
    """The stream with a column for each thing that is told, and columns before and after for each table."""
    from pyspark.sql import functions
    from pyspark.sql.types import BinaryType, StringType, StructType

    names = {name.lower() for name in frame.columns}
    unread = functions.lit(None).cast(StringType())
    if "value" in names and isinstance(frame.schema["value"].dataType, StringType | BinaryType) and "op" not in names:
        text = frame["value"].cast(StringType())
        envelope = ",".join(f"{name}:{kind}" for name, kind in _PARTS.items())
        frame = frame.withColumn("_read", functions.from_json(text, f"struct<payload:struct<{envelope}>,{envelope}>"))
        parts = {name: functions.coalesce(frame[f"_read.payload.{name}"], frame[f"_read.{name}"]) for name in _PARTS}
        unread = functions.when(parts["op"].isNull() & parts["status"].isNull(), text)
    else:
        texts = all(isinstance(frame.schema[part].dataType, StringType) for part in ("before", "after") if part in names)
        if not names >= {"op", "before", "after", "source"} or not texts:
            wanted = ", ".join(sorted(captured.COLUMNS))
            raise InvalidStream(
                f"a stream of several tables has the columns of headwater_postgres ({wanted}), or is of Debezium's: a column "
                "value of text, or op, source, and before and after as JSON; follow any other table by table"
            )
        parts = {name: _told(frame, name, kind) for name, kind in _PARTS.items()}
    source = parts["source"]
    frame = frame.select(
        *(parts[name].alias(name) for name in ("op", "before", "after", "status", "event_count", "data_collections")),
        functions.concat_ws(".", source["db"], source["schema"], source["table"]).alias("table"),
        functions.struct(source["lsn"].alias("lsn"), source["ts_ms"].alias("ts_ms")).alias("source"),
        functions.regexp_replace(functions.coalesce(parts["transaction"]["id"], parts["id"]), *_POSITIONED).alias("xid"),
        parts["transaction"]["total_order"].alias("total_order"),
        unread.alias(UNREAD),
    )
    rows = []
    for i, (key, entry) in enumerate(tables.items()):
        meant = (frame["table"] == key) | frame["table"].endswith(f".{key}")
        kind = StructType(entry.schema.fields)
        for part, name in (("before", before(i)), ("after", after(i))):
            rows.append(functions.when(meant, functions.from_json(frame[part], kind)).alias(name))
    kept = [name for name in frame.columns if name not in {"before", "after"}]
    return frame.select(*kept, *rows)


def _told(frame: DataFrame, name: str, kind: str) -> Column:
    """A part in the type that is wanted; NULL if the stream does not have it, or some of its fields."""
    from pyspark.sql import functions
    from pyspark.sql.types import StructType

    if name not in frame.columns:
        return functions.lit(None).cast(kind)
    found = frame.schema[name].dataType
    if not kind.startswith("struct") or not isinstance(found, StructType):
        return frame[name].cast(kind)
    fields = [part.split(":") for part in kind.removeprefix("struct<").removesuffix(">").split(",")]
    has = [
        (frame[f"{name}.{field}"] if field in found.names else functions.lit(None)).cast(told).alias(field)
        for field, told in fields
    ]
    return functions.when(frame[name].isNotNull(), functions.struct(*has))
