"""Reads one statement: which kind it is, its names, and where the user's queries and expressions start and end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from headwater.errors import InvalidName, InvalidQuery, InvalidSchema, NotSupported
from headwater.frontend.statements.changes import read_delete, read_merge, read_update
from headwater.frontend.statements.reader import Reader
from headwater.frontend.statements.scanner import excerpt
from headwater.frontend.statements.syntax import (
    CreateSketch,
    CreateTable,
    CreateView,
    Describe,
    Drop,
    Explain,
    Insert,
    Query,
    ShowSketches,
    ShowTables,
    ShowViews,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.frontend.statements.syntax import Show, Statement

ACCEPTED = (
    "CREATE TABLE, CREATE [OR REPLACE] LIVE VIEW … AS, CREATE SKETCH … ON … FOR, DROP TABLE, DROP LIVE VIEW, DROP SKETCH, "
    "INSERT INTO, UPDATE, DELETE FROM, MERGE INTO, SHOW TABLES, SHOW LIVE VIEWS, SHOW SKETCHES, DESCRIBE, EXPLAIN LIVE VIEW, "
    "and queries (SELECT, WITH, VALUES, FROM, TABLE)"
)
_QUERY_STARTS = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "(")
_CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE")
_SKETCH_OPTIONS = ("fragments", "maintain", "witnesses", "key_filter", "push_down", "best")


def parse(text: str) -> Statement:
    """Read the text of one statement; a `;` after it and comments around it are fine."""
    reader = Reader(text)
    if reader.ended():
        raise InvalidQuery(f"there is no statement here; accepted are {ACCEPTED}")
    if any(token.word == ";" for token in reader.tokens):
        raise NotSupported(f"one statement at a time, without a ; between them: {excerpt(text)}")
    if any(reader.at(word) for word in _QUERY_STARTS):
        return Query(_read_query(reader))
    for words, read in _STATEMENTS.items():
        if reader.accept(*words):
            return read(reader)
    hint = " (views here are live: CREATE LIVE VIEW)" if reader.at("CREATE") or reader.at("DROP") else ""
    raise NotSupported(f"not a statement of Headwater: {excerpt(text)}{hint}; accepted are {ACCEPTED}")


def parse_query(text: str) -> str:
    """The text of one query; refuses all else, which Spark would run at once and outside any epoch."""
    reader = Reader(text)
    if any(token.word == ";" for token in reader.tokens):
        raise NotSupported(f"one query at a time, without a ; between them: {excerpt(text)}")
    return _read_query(reader)


def _read_query(reader: Reader) -> str:
    """Take the rest of the statement as a query; it may not change anything, as Spark would run that outside any epoch."""
    if not any(reader.at(word) for word in _QUERY_STARTS):
        raise reader.unexpected("a query (SELECT, WITH, VALUES, FROM, TABLE)")
    words = [token.word for token in reader.tokens]
    main = _after_ctes(reader, words)
    level = reader.tokens[reader.position].depth
    writes = main < len(words) and words[main] in _CHANGES
    if main < len(words) and words[main] == "FROM":
        writes = any(
            token.depth == level and token.word == "INSERT" and following in ("INTO", "OVERWRITE")
            for token, following in zip(reader.tokens[main:], words[main + 1 :], strict=False)
        )
    if writes:
        raise NotSupported(f"INSERT, UPDATE, DELETE or MERGE cannot stand within a query: {excerpt(reader.text)}")
    return reader.cut(len(reader.tokens))


def _after_ctes(reader: Reader, words: list[str]) -> int:
    """Where the query starts after `WITH a (x) AS (…), b AS (…)`."""
    if not reader.at("WITH"):
        return reader.position
    level = reader.tokens[reader.position].depth
    for index in range(reader.position, len(words) - 1):
        closes = words[index] == ")" and reader.tokens[index].depth == level
        if closes and words[index + 1] not in (",", "AS", "(", "MAX"):
            return index + 1
    return len(words)


def _read_create_table(reader: Reader) -> CreateTable:
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name("a table name")
    if not reader.accept("("):
        raise reader.unexpected("( and the columns: CREATE TABLE takes a list of columns and no query")
    columns: list[str] = []
    keys: list[tuple[str, ...]] = []
    while True:
        if reader.at("PRIMARY", "KEY", "("):
            reader.expect("PRIMARY", "KEY")
            keys.append(reader.names("a key column"))
        else:
            columns.append(_read_column(reader, keys))
        if not reader.accept(","):
            break
    reader.expect(")")
    options = _read_options(reader) if reader.accept("WITH") else {}
    if not reader.ended():
        raise NotSupported(f"CREATE TABLE takes columns, PRIMARY KEY and WITH (…), nothing after them: {excerpt(reader.text)}")
    if len(keys) > 1:
        raise InvalidSchema(f"table {name!r} has more than one PRIMARY KEY; write PRIMARY KEY (a, b) for a key of two columns")
    if not columns:
        raise InvalidSchema(f"table {name!r} has no columns")
    return CreateTable(name, ", ".join(columns), keys[0] if keys else None, if_not_exists, **options)


def _read_options(reader: Reader) -> dict[str, str]:
    """Take `(ttl = '10 minutes', event_time = ts)`."""
    options: dict[str, str] = {}
    reader.expect("(")
    while True:
        name = reader.choice("TTL", "EVENT_TIME").lower()
        reader.expect("=")
        if name in options:
            raise InvalidQuery(f"the option {name} is there twice: {excerpt(reader.text)}")
        options[name] = reader.text_or_name("a text such as '10 minutes'" if name == "ttl" else "the name of a column")
        if not reader.accept(","):
            break
    reader.expect(")")
    return options


def _read_column(reader: Reader, keys: list[tuple[str, ...]]) -> str:
    """Take `name TYPE …` as Spark's DDL; a PRIMARY KEY within goes to `keys`."""
    start = reader.position
    name = reader.name("a column name")
    reader.position = start
    stop = _end_of_column(reader)
    if stop == start + 1:
        reader.position = stop
        raise reader.unexpected(f"the type of column {name!r}")
    pieces = []
    while reader.position < stop:
        index = next((at for at in range(reader.position, stop) if _is_key(reader, at, start)), stop)
        if index > reader.position:
            pieces.append(reader.cut(index))
        if reader.position < stop:
            reader.position += 2
            keys.append((name,))
    return " ".join(pieces)


def _is_key(reader: Reader, index: int, start: int) -> bool:
    return index > start + 1 and [token.word for token in reader.tokens[index : index + 2]] == ["PRIMARY", "KEY"]


def _end_of_column(reader: Reader) -> int:
    """The comma or bracket that ends a column; the commas of `MAP<STRING, INT>` do not."""
    level = reader.tokens[reader.position].depth
    angles = 0
    for index in range(reader.position, len(reader.tokens)):
        token = reader.tokens[index]
        if token.depth < level:
            return index
        if token.depth > level:
            continue
        if token.word == "," and angles == 0:
            return index
        angles += (token.word == "<") - (token.word == ">")
    return len(reader.tokens)


def _read_create_view(reader: Reader, *, replace: bool) -> CreateView:
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    if if_not_exists and replace:
        raise InvalidQuery("a view is created with OR REPLACE or with IF NOT EXISTS, not with both")
    name = reader.name("a view name")
    refresh = reader.choice("AUTO", "INCREMENTAL", "FULL").lower() if reader.accept("REFRESH") else "auto"
    strategy = _read_strategy(reader) if reader.accept("STRATEGY") else "auto"
    reader.expect("AS")
    query = _read_query(reader)
    return CreateView(name, query, replace, if_not_exists, cast("Literal['auto', 'incremental', 'full']", refresh), strategy)


def _read_strategy(reader: Reader) -> str:
    """Take the name of a strategy; `ABSORPTION LAZY` may have a hyphen."""
    chosen = reader.choice("AUTO", "COUNTING", "ABSORPTION", "RELATIVE", "DRED", "RECOMPUTE").lower()
    if chosen != "absorption":
        return chosen
    reader.accept("-")
    when = reader.choice("LAZY", "EAGER").lower()
    if when == "eager" and reader.accept("EVERY"):
        return f"{chosen}-{when} every {reader.until('a number of rows, or a span of time', 'AS').lower()}"
    return f"{chosen}-{when}"


def _read_create_sketch(reader: Reader) -> CreateSketch:
    """`name [ON table (column, …), …] [WITH (option = value, …)] FOR query`."""
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name("the name of a sketch")
    on = []
    named = reader.accept("ON")
    while named:
        table = reader.name("a table name")
        on.append((table, reader.names("a column name")))
        named = reader.accept(",")
    options: dict[str, int | str | bool] = {}
    if reader.accept("WITH"):
        reader.expect("(")
        while True:
            option, value = _read_option(reader)
            if option in options:
                raise InvalidQuery(f"the option {option} of sketch {name} is given twice")
            options[option] = value
            if not reader.accept(","):
                break
        reader.expect(")")
    reader.expect("FOR")
    return CreateSketch(name, tuple(on), _read_query(reader), if_not_exists, tuple(options.items()))


def _read_option(reader: Reader) -> tuple[str, int | str | bool]:
    """`name = value` of a sketch."""
    option = next((each for each in _SKETCH_OPTIONS if reader.accept(each.upper())), None)
    if option is None:
        raise reader.unexpected(f"one of the options {', '.join(_SKETCH_OPTIONS)}")
    reader.expect("=")
    if option == "maintain":
        return option, reader.name("eager or lazy").lower()
    if option in ("fragments", "best"):
        return option, reader.whole_number(f"a number for {option}")
    if not (reader.at("TRUE") or reader.at("FALSE")):
        raise reader.unexpected("true or false")
    return option, reader.name("true or false").lower() == "true"


def _read_insert(reader: Reader) -> Insert:
    if reader.at("TABLE") and not reader.at("(", ahead=1):
        reader.expect("TABLE")
    table = reader.name("a table name")
    columns = None
    if reader.at("(") and _is_column_list(reader):
        columns = reader.names("a column name")
        if len({column.lower() for column in columns}) < len(columns):
            raise InvalidQuery(f"a column is named twice in INSERT INTO {table} ({', '.join(columns)})")
    return Insert(table, columns, _read_query(reader))


def _is_column_list(reader: Reader) -> bool:
    """`(a, b) SELECT …` names columns, `(SELECT …)` and `(VALUES (1)) UNION …` are queries."""
    start = reader.position
    try:
        reader.names("a column name")
    except InvalidName:
        return reader.at(".") or reader.tokens[start + 1].kind == "string"
    except InvalidQuery:
        return False
    else:
        return True
    finally:
        reader.position = start


def _read_drop(reader: Reader, kind: Literal["table", "view", "sketch"]) -> Drop:
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.name(f"a {kind} name")
    reader.expect_end()
    return Drop(kind, name, if_exists)


def _read_describe(reader: Reader) -> Describe:
    kind: Literal["table", "view"] | None = None
    if reader.accept("LIVE", "VIEW"):
        kind = "view"
    elif reader.at("TABLE") and reader.position + 1 < len(reader.tokens):
        reader.expect("TABLE")
        kind = "table"
    name = reader.name("the name of a table or view")
    reader.expect_end()
    return Describe(kind, name)


def _read_explain(reader: Reader) -> Explain:
    name = reader.name("a view name")
    shown = reader.choice("TEXT", "JSON", "MERMAID").lower() if reader.accept("FORMAT") else "text"
    reader.expect_end()
    return Explain(name, cast("Literal['text', 'json', 'mermaid']", shown))


def _read_nothing(reader: Reader, statement: Show) -> Show:
    reader.expect_end()
    return statement


_STATEMENTS: dict[tuple[str, ...], Callable[[Reader], Statement]] = {
    ("CREATE", "TABLE"): _read_create_table,
    ("CREATE", "LIVE", "VIEW"): lambda reader: _read_create_view(reader, replace=False),
    ("CREATE", "OR", "REPLACE", "LIVE", "VIEW"): lambda reader: _read_create_view(reader, replace=True),
    ("CREATE", "SKETCH"): _read_create_sketch,
    ("INSERT", "INTO"): _read_insert,
    ("UPDATE",): read_update,
    ("DELETE", "FROM"): read_delete,
    ("MERGE", "INTO"): read_merge,
    ("DROP", "TABLE"): lambda reader: _read_drop(reader, "table"),
    ("DROP", "LIVE", "VIEW"): lambda reader: _read_drop(reader, "view"),
    ("DROP", "SKETCH"): lambda reader: _read_drop(reader, "sketch"),
    ("SHOW", "SKETCHES"): lambda reader: _read_nothing(reader, ShowSketches()),
    ("SHOW", "TABLES"): lambda reader: _read_nothing(reader, ShowTables()),
    ("SHOW", "LIVE", "VIEWS"): lambda reader: _read_nothing(reader, ShowViews()),
    ("DESCRIBE",): _read_describe,
    ("DESC",): _read_describe,
    ("EXPLAIN", "LIVE", "VIEW"): _read_explain,
}
