"""The SQL statements of Headwater: text in, a frozen dataclass out; and the SELECTs that say which rows a change touches.

    parse("DELETE FROM sales AS s WHERE s.price < 0")  =  Delete("sales", alias="s", condition="s.price < 0")

Rule: what a user wrote as query or expression is kept as an exact slice of the original text and is read by Spark alone.
Only the frame around it is ours, so no query can mean one thing here and another in Spark.
"""

from headwater.frontend.statements.merged import merged_actions
from headwater.frontend.statements.parser import parse, parse_query
from headwater.frontend.statements.selects import (
    TargetColumn,
    quote,
    select_deleted,
    select_inserted,
    select_merged,
    select_updated,
    target_columns,
)
from headwater.frontend.statements.syntax import (
    Assignment,
    Clause,
    CreateSketch,
    CreateTable,
    CreateView,
    Delete,
    Describe,
    Drop,
    Explain,
    Insert,
    Merge,
    Query,
    ShowSketches,
    ShowTables,
    ShowViews,
    Statement,
    Update,
)

__all__ = [
    "Assignment",
    "Clause",
    "CreateSketch",
    "CreateTable",
    "CreateView",
    "Delete",
    "Describe",
    "Drop",
    "Explain",
    "Insert",
    "Merge",
    "Query",
    "ShowSketches",
    "ShowTables",
    "ShowViews",
    "Statement",
    "TargetColumn",
    "Update",
    "merged_actions",
    "parse",
    "parse_query",
    "quote",
    "select_deleted",
    "select_inserted",
    "select_merged",
    "select_updated",
    "target_columns",
]
