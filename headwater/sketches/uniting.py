"""Whether several sketches together serve a query that none of them serves alone: their ranges of a value cover its range.

    Q' asks for groups with  5 ≤ b ≤ 30;   there are sketches for  0 ≤ b < 10  and for  10 ≤ b < 40:   P' ⊆ P₁ ∪ P₂

So for queries that are the same but for the bounds of one value in their last filter, which nothing but projections and an
order follows: each row that Q' gives is a row that one of the others gives, from the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.algebra import plan
from headwater.algebra.expressions import Expression, Literal
from headwater.compiler.linear import conjuncts
from headwater.sketches.facts import Unsafe
from headwater.sketches.reuse import Different, comparison
from headwater.sketches.safety import barriers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from headwater.sketches.captured import Captured
    from headwater.sketches.facts import Facts, Guard

    # A place between values: before all, before or after one of them, after all.
    Cut = tuple[int, Any, int]

_FIRST: Cut = (-1, 0, 0)
_LAST: Cut = (1, 0, 0)


@dataclass(frozen=True)
class Span:
    """A plan as the rest of it without the bounds of one value, that value, and the range that they leave it."""

    rest: plan.Node
    others: tuple[Expression, ...]
    subject: Expression
    low: Cut
    high: Cut


def united(
    sketches: Mapping[str, Captured], root: plan.Node, facts: Callable[[Sequence[Guard]], Facts]
) -> tuple[str, ...] | None:
    """The names of sketches whose fragments, all together, are enough for a query of this plan; None if there are none.

    `facts` are what is known of its tables, given what the sketches rely on.
    """
    for wanted in _spans(root):
        found = {}
        for name, sketch in sketches.items():
            for span in () if sketch.query.root is None else _spans(sketch.query.root):
                if (span.rest, span.others, span.subject) == (wanted.rest, wanted.others, wanted.subject):
                    found[name] = span
        for chosen in _alike(sketches, found):
            names = _covering(wanted, {name: found[name] for name in chosen})
            if names is not None and _is_safe(root, [sketches[name] for name in names], facts):
                return names
    return None


def _alike(sketches: Mapping[str, Captured], names: Iterable[str]) -> list[list[str]]:
    """Names of sketches by the same attributes, cut in the same way."""
    kinds: dict[Any, list[str]] = {}
    for name in names:
        kinds.setdefault((sketches[name].accesses, sketches[name].barriers), []).append(name)
    return list(kinds.values())


def _is_safe(root: plan.Node, sketches: list[Captured], facts: Callable[[Sequence[Guard]], Facts]) -> bool:
    known = facts([guard for sketch in sketches for guard in sketch.guards])
    try:
        walls = barriers(root, [(covered.scan, covered.column) for covered in sketches[0].accesses], known)
    except Unsafe:
        return False
    return walls <= sketches[0].barriers


def _covering(wanted: Span, spans: Mapping[str, Span]) -> tuple[str, ...] | None:
    """Some whose ranges cover the one that is wanted, as few as going from its start to its end needs."""
    reached, names = wanted.low, []
    while reached < wanted.high:
        further = {name: span.high for name, span in spans.items() if span.low <= reached < span.high}
        if not further:
            return None
        names.append(max(further, key=lambda name: further[name]))
        reached = further[names[-1]]
    return tuple(names) or None


def _spans(root: plan.Node) -> Iterator[Span]:
    """The plan once for each value that its last filter bounds by constants."""
    above: list[plan.Node] = []
    node = root
    while isinstance(node, plan.Project | plan.Sort):
        above.append(node)
        node = node.child
    if not isinstance(node, plan.Filter):
        return
    parts = [(part, _bound(part)) for part in conjuncts(node.condition)]
    for subject in dict.fromkeys(bound[1] for _, bound in parts if bound is not None):
        low, high = _FIRST, _LAST
        for function, limit in ((bound[0], bound[2]) for _, bound in parts if bound is not None and bound[1] == subject):
            if function in ("GreaterThan", "GreaterThanOrEqual", "EqualTo"):
                low = max(low, (0, limit, int(function == "GreaterThan")))
            if function in ("LessThan", "LessThanOrEqual", "EqualTo"):
                high = min(high, (0, limit, int(function != "LessThan")))
        rest: plan.Node = replace(node, condition=Literal(None, pa.bool_()))
        for each in reversed(above):
            rest = plan.with_children(each, [rest])
        others = tuple(part for part, bound in parts if bound is None or bound[1] != subject)
        yield Span(rest, others, subject, low, high)


def _bound(part: Expression) -> tuple[str, Expression, Any] | None:
    """A comparison of a value with a constant."""
    try:
        found = comparison(part)
    except Different:
        return None
    if found is None or len(found[2]) != 1 or found[0] == "In":
        return None
    return found[0], found[1], found[2][0]
