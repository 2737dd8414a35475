"""Why a row is not there: the lowest operators at which what could have become the row ends.

The row is asked for as if it were there. A table without a row that would be needed, a join whose pairs fail, a condition that
is not true, a group with another value: each is told with the rows that came that far. Where one of two partners is missing,
only that one is told; where there are several ways, as in a union, each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.algebra import plan
from headwater.algebra.expressions import Column
from headwater.algebra.texts import text_of
from headwater.provenance.derivations import tuples
from headwater.provenance.naming import label_of, names_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from headwater.provenance.derivations import Row
    from headwater.provenance.evaluation import Visit
    from headwater.runtime.catalog import Entry

_SHOWN = 20


@dataclass(frozen=True)
class Missing:
    """An operator at which candidates end: what they lack, and some of them, with the names of their columns."""

    operator: str
    what: str
    columns: tuple[str, ...]
    candidates: tuple[Row, ...]

    def __str__(self) -> str:
        shown = "".join(f"\n    {dict(zip(self.columns, row, strict=True))}" for row in self.candidates)
        return f"{self.operator}: {self.what}{shown}"


@dataclass(frozen=True)
class WhyNot:
    """Why `row` is not in `view` at `epoch`."""

    view: str
    epoch: int
    row: Row
    missing: tuple[Missing, ...]

    def __str__(self) -> str:
        shown = ", ".join(map(repr, self.row))
        return "\n".join([f"{self.view}({shown}) is not there:", *(f"- {part}" for part in self.missing)])


def missing(top: Visit, entries: Mapping[str, Entry]) -> tuple[Missing, ...]:
    """Where the candidates ended, each place once."""
    found: dict[Missing, None] = {}
    for visit in _ends(top):
        found[_told(visit, entries)] = None
    return tuple(found)


def _ends(visit: Visit) -> list[Visit]:
    if visit.found or (visit.goal.columns and not visit.goal.values.num_rows):
        return []
    deeper = [end for child in _needed(visit) for end in _ends(child)]
    # That a recursive row is not there either says nothing, where something else says why.
    return [end for end in deeper if not isinstance(end.node, plan.Recursive)] or deeper or [visit]


def _needed(visit: Visit) -> list[Visit]:
    """The inputs without whose rows there is none here."""
    node = visit.node
    if isinstance(node, plan.Join) and node.kind in ("anti", "existence"):
        return visit.children[:1]
    if isinstance(node, plan.Aggregate | plan.Scalar) and not getattr(node, "keys", ()):
        return []
    return visit.children


def _told(visit: Visit, entries: Mapping[str, Entry]) -> Missing:  # noqa: PLR0911  (one case a kind)
    node = visit.node
    names = names_of(node, entries)
    wanted = _wanted(visit, names)
    before = visit.before
    match node:
        case plan.Scan(source=source):
            return Missing(label_of(node), f"no row of {source} with {wanted}" if wanted else f"{source} is empty", (), ())
        case plan.Filter(condition=condition):
            return _with(visit, entries, label_of(node), f"{text_of(condition, names)} is not true")
        case plan.Join(kind="inner", condition=condition):
            both = [*names_of(node.left, entries), *names_of(node.right, entries)]
            text = "no pair" if condition is None else f"no pair meets {text_of(condition, both)}"
            return _with(visit, entries, label_of(node), text)
        case plan.Join(kind="anti"):
            return _with(visit, entries, label_of(node), "every candidate has a partner, and must have none")
        case plan.Join(kind="semi"):
            return _with(visit, entries, label_of(node), "no candidate has a partner")
        case plan.Limit(count=count, offset=offset):
            at = f" after the first {offset}" if offset else ""
            return Missing(label_of(node), f"not among the {count} rows{at} that are kept", (), ())
    text = f"what is there differs from {wanted}" if wanted else "nothing comes of it"
    return Missing(label_of(node), text, tuple(names), _some(before))


def _with(visit: Visit, entries: Mapping[str, Entry], operator: str, what: str) -> Missing:
    """With the rows of the first input as candidates."""
    child = visit.children[0] if visit.children else None
    if child is None or child.before is None:
        return Missing(operator, what, (), ())
    return Missing(operator, what, tuple(names_of(child.node, entries)), _some(child.kept))


def _some(rows: pa.RecordBatch | None) -> tuple[Row, ...]:
    if rows is None:
        return ()
    few = rows.slice(0, _SHOWN)
    return tuple(tuples(few.columns, few.num_rows))


def _wanted(visit: Visit, names: list[str]) -> str:
    """What the goal asked for, in words; of several values some."""
    node, goal = visit.node, visit.goal
    if not goal.columns:
        return ""
    told = []
    for column, values in zip(goal.columns, goal.values.columns, strict=True):
        if isinstance(node, plan.Project) and isinstance(node.expressions[column], Column):
            continue
        distinct = list(dict.fromkeys(map(repr, values.slice(0, _SHOWN).to_pylist())))
        told.append(f"{names[column]} = {distinct[0]}" if len(distinct) == 1 else f"{names[column]} in ({', '.join(distinct)})")
    return " and ".join(told)
