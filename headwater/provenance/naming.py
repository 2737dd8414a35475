"""Names for the columns of a plan's nodes, and for the nodes, as a user would call them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.algebra import plan
from headwater.algebra.texts import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.runtime.catalog import Entry


def names_of(node: plan.Node, entries: Mapping[str, Entry]) -> list[str]:  # noqa: PLR0911  (one case a kind)
    """What the columns of a node are called: by the table they come from, or by what computes them."""
    match node:
        case plan.Scan(source=source):
            return [f"{source}.{name}" for name in entries[source.lower()].arrow.names]
        case plan.Project(child=child, expressions=expressions):
            below = names_of(child, entries)
            return [text_of(expression, below) for expression in expressions]
        case plan.Aggregate(child=child, outputs=outputs, keys=keys):
            below = names_of(child, entries)
            return [text_of(output, below) for output in outputs or keys]
        case plan.Join(left=left, right=right):
            own = names_of(left, entries)
            return [*own, "exists"] if node.kind == "existence" else [*own, *names_of(right, entries)][: len(node.types)]
        case plan.Filter(child=child) | plan.Sort(child=child) | plan.Limit(child=child) | plan.Explained(child=child):
            return names_of(child, entries)
        case plan.Window(child=child, functions=functions):
            below = names_of(child, entries)
            return [*below, *(text_of(function, below) for function in functions)]
        case plan.Union(inputs=inputs):
            return names_of(inputs[0], entries)
        case plan.Fixpoint(relations=relations, result=result):
            return [f"{relations[result].name}.{i}" for i in range(len(node.types))]
    return [f"#{i}" for i in range(len(node.types))]


def label_of(node: plan.Node) -> str:
    """What a node is called."""
    match node:
        case plan.Join(kind=kind):
            return "Join" if kind == "inner" else f"{kind.capitalize()} join"
        case plan.Aggregate(keys=keys, outputs=outputs) if tuple(outputs) == tuple(keys):
            return "Distinct"
        case plan.Scan(source=source):
            return f"Table {source}"
        case plan.Opaque(name=name):
            return name
    return type(node).__name__
