"""Spark's types, as its JSON tells them, in Arrow — the same mapping as Spark's own Arrow exchange.

Within structs, arrays and maps all may be NULL. Spark knows better of some, but where a struct is NULL, so is what it has in
Arrow, which then refuses to hand over a field that is said to have none.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from headwater.errors import EvaluationFailed, InvalidSchema, NotSupported
from headwater.text import is_unicode

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

# Stands in the name of a type whose strings are not compared by their bytes; Arrow's type does not show it.
COLLATED = " collate "
# Where a type is described as JSON, the fields of structs have that beside their types.
_COLLATIONS = "__COLLATIONS"


# Spark's parser takes twice as long for each further level of types, and Python reads them by calls within calls.
_DEEPEST = 50


def arrow_type(described: Any) -> pa.DataType:  # noqa: ANN401  (JSON)
    """The Arrow type for a type as `DataType.jsonValue` describes it."""
    from pyspark.sql.types import _parse_datatype_json_value

    return arrow_of(_parse_datatype_json_value(described))


def is_collated(described: str) -> bool:
    """Whether a type, described as JSON, has strings that are not compared by their bytes."""
    return COLLATED in described or _COLLATIONS in described


@cache
def arrow_of(spark_type: DataType) -> pa.DataType:
    """The Arrow type in which Spark hands over values of this type."""
    from pyspark.sql.pandas.types import to_arrow_type

    if _has_void_keys(spark_type):
        raise NotSupported(
            f"Arrow has no type for {spark_type.simpleString()}: the keys of a map are of some type; "
            "say of which, as in CAST(map() AS MAP<STRING, INT>)"
        )
    return to_arrow_type(_loose(spark_type), timezone="UTC")


def _has_void_keys(spark_type: DataType) -> bool:
    from pyspark.sql.types import ArrayType, MapType, NullType, StructType

    match spark_type:
        case MapType():
            return isinstance(spark_type.keyType, NullType) or _has_void_keys(spark_type.valueType)
        case ArrayType():
            return _has_void_keys(spark_type.elementType)
        case StructType():
            return any(_has_void_keys(part.dataType) for part in spark_type)
    return False


def arrow_schema(struct: StructType) -> pa.Schema:
    """The Arrow schema of Spark rows, under the users' names."""
    import pyarrow as pa

    from headwater.lengths import declared

    return pa.schema([pa.field(field.name, arrow_of(field.dataType)) for field in struct.fields], metadata=declared(struct))


def loosened(struct: StructType) -> StructType:
    """The same columns, within which all may be NULL."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(f.name, _loose(f.dataType), f.nullable, f.metadata) for f in struct.fields])


def require_readable(described: str) -> None:
    """Refuses a list of columns that Spark's parser would not come back from."""
    depth = deepest = 0
    for sign in described:
        depth += (sign == "<") - (sign == ">")
        deepest = max(deepest, depth)
    if deepest > _DEEPEST:
        raise InvalidSchema(f"types within each other, {deepest} deep; there may be {_DEEPEST}")
    if not is_unicode(described):
        raise InvalidSchema(f"{described!r:.200} has half of a surrogate pair in it, which is no character")


def require_shallow(struct: StructType) -> None:
    """Refuses types that are deeper within each other than anybody needs, and names that are no text."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    pending: list[tuple[DataType, int]] = [(struct, 0)]
    while pending:
        kind, depth = pending.pop()
        if depth > _DEEPEST:
            raise InvalidSchema(f"types within each other, more than {_DEEPEST} deep")
        if isinstance(kind, StructType):
            for field in kind.fields:
                if not is_unicode(field.name):
                    raise InvalidSchema(f"the name {field.name!r} has half of a surrogate pair in it, which is no character")
                pending.append((field.dataType, depth + 1))
        elif isinstance(kind, ArrayType):
            pending.append((kind.elementType, depth + 1))
        elif isinstance(kind, MapType):
            pending += [(kind.keyType, depth + 1), (kind.valueType, depth + 1)]


def collected(frame: DataFrame) -> pa.Table:
    """The rows of a DataFrame."""
    import pyarrow as pa

    try:
        return _collected(frame)
    except pa.ArrowException as error:
        # PySpark promises some values that are never NULL, such as the parts of a geometry, and hands them over all the same.
        kind = frame.schema.simpleString()
        raise EvaluationFailed(f"Spark cannot hand over rows of {kind}, because Arrow cannot hold it: {error}") from error


def _collected(frame: DataFrame) -> pa.Table:
    from pyspark.sql import functions
    from pyspark.sql.types import NullType

    schema = frame.schema
    loose = loosened(schema)
    # What explode(array()) gives is never NULL, because it is never there; Arrow knows no such column.
    void = [isinstance(field.dataType, NullType) and not field.nullable for field in schema.fields]
    if loose == schema and not any(void):
        return frame.toArrow()
    # Names may be there twice.
    places = frame.toDF(*(f"c{i}" for i in range(len(schema.fields))))
    columns = [functions.lit(None) if void[i] else places[f"c{i}"] for i in range(len(void))]
    cast = [columns[i].cast(field.dataType).alias(f"c{i}") for i, field in enumerate(loose.fields)]
    return places.select(*cast).toArrow().rename_columns(schema.names)


def _loose(spark_type: DataType) -> DataType:
    from pyspark.sql.types import ArrayType, MapType, StructType

    return spark_type.toNullable() if isinstance(spark_type, ArrayType | MapType | StructType) else spark_type
