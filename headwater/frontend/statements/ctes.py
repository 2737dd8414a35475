"""Reads `WITH RECURSIVE a (x) AS (…), b AS (…) SELECT …` into its parts: Spark's parser knows it, its analyser not all of it.

The texts of the parts stay as users wrote them.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.errors import InvalidQuery, NotSupported
from headwater.frontend.statements.reader import Reader
from headwater.frontend.statements.scanner import excerpt

_QUERIES = ("SELECT", "VALUES", "FROM", "TABLE", "WITH")
_TAILS = (("ORDER", "BY"), ("SORT", "BY"), ("CLUSTER", "BY"), ("DISTRIBUTE", "BY"), ("LIMIT",), ("OFFSET",))


@dataclass(frozen=True)
class Relation:
    """One relation of a WITH: its branches, and whether UNION ALL is between them; None if there is only one."""

    name: str
    columns: tuple[str, ...] | None
    branches: tuple[str, ...]
    duplicates: bool | None
    level: int | None = None


@dataclass(frozen=True)
class Recursion:
    """A query beside relations that may be defined by each other."""

    relations: tuple[Relation, ...]
    query: str


def read_recursion(text: str) -> Recursion | None:
    """The parts of a query that begins with WITH RECURSIVE; None if it does not."""
    reader = Reader(text)
    if not reader.accept("WITH", "RECURSIVE"):
        return None
    relations = [_relation(reader)]
    while reader.accept(","):
        relations.append(_relation(reader))
    names = [relation.name.lower() for relation in relations]
    for name in names:
        if names.count(name) > 1:
            raise InvalidQuery(f"WITH RECURSIVE defines {name!r} twice")
    if reader.ended():
        raise reader.unexpected("a query after WITH RECURSIVE")
    return Recursion(tuple(relations), reader.cut(len(reader.tokens)))


def recursions_within(text: str) -> list[tuple[int, int]]:
    """From where to where the queries go that stand in parentheses and begin with WITH RECURSIVE; not those within others."""
    tokens = Reader(text).tokens
    found: list[tuple[int, int]] = []
    for i, token in enumerate(tokens):
        if token.word == "(" and [t.word for t in tokens[i + 1 : i + 3]] == ["WITH", "RECURSIVE"]:
            if found and token.start < found[-1][1]:
                continue
            close = next(t for t in tokens[i + 1 :] if t.word == ")" and t.depth == token.depth)
            found.append((tokens[i + 1].start, close.start))
    return found


def _relation(reader: Reader) -> Relation:
    name = reader.name("the name of a relation")
    columns = None
    if reader.at("(") and not any(reader.at(word, ahead=1) for word in (*_QUERIES, "(")):
        columns = reader.names("a column name")
    level = None
    if reader.accept("MAX", "RECURSION", "LEVEL"):
        level = _level(reader)
    reader.accept("AS")
    reader.expect("(")
    body = reader.cut(reader.find())
    reader.expect(")")
    if not body.strip():
        raise InvalidQuery(f"{name!r} has no query")
    branches, duplicates = _branches(body)
    return Relation(name, columns, branches, duplicates, level)


def _level(reader: Reader) -> int:
    if not reader.ended():
        token = reader.tokens[reader.position]
        piece = reader.text[token.start : token.end]
        if piece.isdecimal():
            reader.position += 1
            return int(piece)
    raise reader.unexpected("a number of rounds")


def _branches(body: str) -> tuple[tuple[str, ...], bool | None]:
    """The queries between the UNIONs of a body, each with the WITH that the body begins with."""
    reader = Reader(body)
    while _is_wrapped(reader):
        first, last = reader.tokens[0], reader.tokens[-1]
        body = body[first.end : last.start]
        reader = Reader(body)
    prefix = _prefix(reader)
    found: list[str] = []
    kinds: list[bool] = []
    while True:
        _require_union_only(reader)
        stop = reader.find("UNION")
        found.append(prefix + reader.cut(stop))
        if not reader.accept("UNION"):
            break
        kinds.append(reader.accept("ALL"))
        if not kinds[-1]:
            reader.accept("DISTINCT")
    if kinds:
        _require_no_tail(found[-1])
    if kinds and kinds[-1] and not all(kinds):
        raise NotSupported(f"a recursion is joined by UNION or by UNION ALL, not by both: {excerpt(body)}")
    return tuple(found), (kinds[-1] if kinds else None)


def _is_wrapped(reader: Reader) -> bool:
    """Whether all of it stands in one pair of parentheses."""
    tokens = reader.tokens
    if len(tokens) < 3 or tokens[0].word != "(" or tokens[-1].word != ")":
        return False
    return all(token.depth > 0 for token in tokens[1:-1])


def _prefix(reader: Reader) -> str:
    """The WITH that a body begins with: each of its branches sees what it defines."""
    if not reader.at("WITH"):
        return ""
    start = reader.tokens[0].start
    reader.expect("WITH")
    if reader.at("RECURSIVE"):
        raise NotSupported("WITH RECURSIVE within WITH RECURSIVE: define all the relations beside each other")
    while True:
        reader.name("the name of a relation")
        if reader.at("(") and not any(reader.at(word, ahead=1) for word in (*_QUERIES, "(")):
            reader.names("a column name")
        reader.accept("AS")
        reader.expect("(")
        reader.position = reader.find()
        reader.expect(")")
        if not reader.accept(","):
            break
    return reader.text[start : reader.tokens[reader.position - 1].end] + "\n" if not reader.ended() else ""


def _require_union_only(reader: Reader) -> None:
    """EXCEPT after UNION takes rows away from all that is before it, which a recursion cannot do."""
    stop = reader.find("UNION")
    tokens = reader.tokens
    for i in range(reader.position, min(stop, len(tokens) - 1)):
        following = tokens[i + 1].word
        opens = following == "(" and i + 2 < len(tokens) and tokens[i + 2].word in (*_QUERIES, "(")
        if (
            tokens[i].depth == 0
            and tokens[i].word in ("EXCEPT", "MINUS")
            and (opens or following in (*_QUERIES, "ALL", "DISTINCT"))
        ):
            raise NotSupported(f"EXCEPT at the top of a recursive relation; put it in parentheses: {excerpt(reader.text)}")


def _require_no_tail(branch: str) -> None:
    """What orders or limits the last branch would order or limit all of them."""
    tokens = Reader(branch).tokens
    for i, token in enumerate(tokens):
        before = tokens[i - 1].word if i else ""
        if token.depth == 0 and before not in (".", ",", "AS", "SELECT"):
            words = tuple(t.word for t in tokens[i : i + 2])
            if any(words[: len(tail)] == tail for tail in _TAILS) and i + 1 < len(tokens):
                raise NotSupported(
                    f"{' '.join(words[:1])} in a recursive relation: order and limit the query over it: {excerpt(branch)}"
                )


__all__ = ["Recursion", "Relation", "read_recursion", "recursions_within"]
