"""The relational algebra: a dozen kinds of node that all of Spark's SELECT comes down to.

Every node is a value: two queries that mean the same by the same steps are equal, whatever they call their columns, and so
share one dataflow and its state. `types` are the types of the columns a node gives; `origin` leads to the node in Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from headwater.algebra.expressions import Call, Column, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from headwater.algebra.expressions import Expression
    from headwater.algebra.origin import Origin
    from headwater.annotations.fragments import Partition

    Types = tuple[pa.DataType, ...]


@dataclass(frozen=True, kw_only=True)
class Node:
    """A relation: a bag of rows with columns of `types`.

    A kind of node declares which of its fields hold the nodes below it; everything that walks or rewrites plans asks for that.
    """

    types: Types
    origin: Origin | None = field(default=None, compare=False, repr=False)
    child_fields: ClassVar[tuple[str, ...]] = ()

    @property
    def children(self) -> tuple[Node, ...]:
        return tuple(child for name in self.child_fields for child in _nodes(getattr(self, name)))


@dataclass(frozen=True, kw_only=True)
class Scan(Node):
    """All rows of a table or of another view."""

    source: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Values(Node):
    """Rows that never change."""

    rows: pa.RecordBatch

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Values) and self.rows.equals(other.rows)

    def __hash__(self) -> int:
        return hash((self.types, self.rows.num_rows))


@dataclass(frozen=True, kw_only=True)
class _OneChild(Node):
    child: Node
    child_fields: ClassVar[tuple[str, ...]] = ("child",)


@dataclass(frozen=True, kw_only=True)
class Project(_OneChild):
    """One row for each, computed from it."""

    expressions: tuple[Expression, ...]


@dataclass(frozen=True, kw_only=True)
class Filter(_OneChild):
    """The rows for which the condition is true."""

    condition: Expression


@dataclass(frozen=True, kw_only=True)
class Annotate(_OneChild):
    """Each row with the fragment that the value of a column is in."""

    column: int
    partition: Partition


@dataclass(frozen=True, kw_only=True)
class Expand(_OneChild):
    """Several rows for each, one by each projection (grouping sets, UNPIVOT)."""

    projections: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Generate(_OneChild):
    """The child's columns `kept`, followed by those of each row that the generator makes (explode, inline, …).

    `collection` is the type of what it takes apart, where that is its only argument.
    """

    generator: Call
    collection: pa.DataType | None
    kept: tuple[int, ...]
    outer: bool


@dataclass(frozen=True, kw_only=True)
class Union(Node):
    """The rows of all inputs, as a bag."""

    inputs: tuple[Node, ...]
    child_fields = ("inputs",)


@dataclass(frozen=True, kw_only=True)
class Join(Node):
    """Pairs of rows for which the condition is true.

    `kind` is inner, left, right, full, semi, anti, existence or single, which is a left join that fails where a left row has
    two partners; the condition reads the left columns, then the right ones.
    """

    left: Node
    right: Node
    kind: str
    condition: Expression | None
    filtered: bool = field(default=True, metadata={"later": True})
    """Whether keys are looked for only where a filter says that they may be there."""
    child_fields = ("left", "right")


@dataclass(frozen=True)
class Equal:
    """Columns, as (input, column), of different inputs that have one value in every row; NULL is one only if `null_safe`."""

    columns: tuple[tuple[int, int], ...]
    null_safe: bool


@dataclass(frozen=True, kw_only=True)
class MultiJoin(Node):
    """The inner join of several inputs on equal columns, which connect them all; `outputs` are columns, as (input, column)."""

    inputs: tuple[Node, ...]
    equal: tuple[Equal, ...]
    outputs: tuple[tuple[int, int], ...]
    filtered: bool = field(default=True, metadata={"later": True})
    child_fields = ("inputs",)


@dataclass(frozen=True, kw_only=True)
class Aggregate(_OneChild):
    """One row for each group of rows with equal `keys`; `outputs` may contain the keys and calls of aggregate functions."""

    keys: tuple[Expression, ...]
    outputs: tuple[Expression, ...]
    best: int | None = field(default=None, metadata={"later": True})
    """If so many of the best values of each group are kept for least and greatest ones, and not all its rows."""


@dataclass(frozen=True)
class SortKey:
    """One key of an order."""

    expression: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, kw_only=True)
class Window(_OneChild):
    """Every row with what window functions say of it among the rows of its partition."""

    functions: tuple[Expression, ...]
    partition: tuple[Expression, ...]
    order: tuple[SortKey, ...]


@dataclass(frozen=True, kw_only=True)
class Sort(_OneChild):
    """The same rows; the order counts only for a limit right above, and for who reads the answer."""

    order: tuple[SortKey, ...]


@dataclass(frozen=True, kw_only=True)
class Limit(_OneChild):
    """The rows after the first `offset`, at most `count` of them (None: all), in `order`; ties go by the whole row."""

    order: tuple[SortKey, ...]
    count: int | None
    offset: int
    best: int | None = field(default=None, metadata={"later": True})
    """If no more than so many rows are kept, or twice as many."""


@dataclass(frozen=True, kw_only=True)
class Scalar(_OneChild):
    """The one value of a scalar subquery: one row always, NULL if the child is empty, an error if it has several rows."""


@dataclass(frozen=True, kw_only=True)
class Opaque(Node):
    """A node that only Spark can evaluate; `by_row` if it treats each row by itself (a Python UDF)."""

    name: str
    inputs: tuple[Node, ...]
    meaning: str
    by_row: bool
    child_fields = ("inputs",)


@dataclass(frozen=True, kw_only=True)
class Recursive(Node):
    """The rows so far of a relation of the nearest fixpoint above, by its number."""

    relation: int


@dataclass(frozen=True, kw_only=True)
class Relation:
    """A relation defined by a body that may read it: a set of rows, or with `duplicates` (UNION ALL) a bag."""

    name: str = field(compare=False)
    body: Node
    duplicates: bool


@dataclass(frozen=True)
class Limits:
    """Where a recursion that does not end is stopped: rounds in one epoch, and rows that are touched in it."""

    rounds: int = 10_000
    rows: int = 50_000_000


@dataclass(frozen=True, kw_only=True)
class Fixpoint(Node):
    """The rows of one of several relations that are defined together, by mutual recursion.

    The least X with Xᵢ = bodyᵢ(X); a body reads X through `Recursive` leaves, and everything else as any query does.
    """

    relations: tuple[Relation, ...]
    result: int
    limits: Limits = Limits()
    strategy: str = "counting"
    """How the relations are kept up to date; the rows are the same."""
    selection: tuple[tuple[int, ...], tuple[tuple[int, bool], ...]] | None = None
    """Of the result, only the best rows of groups matter: the columns of the groups; columns, and whether more is better."""
    identity: str = ""
    """What it was before it was compiled, where a strategy was chosen for it: by that, who explains rows finds their state."""
    child_fields = ("relations",)


@dataclass(frozen=True, kw_only=True)
class Explained(_OneChild):
    """The rows of the child; beside them it is kept what each follows from: the same rows as a relation with annotations."""

    annotation: Fixpoint
    child_fields = ("child", "annotation")


Some = TypeVar("Some", bound=Node)


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, from the top."""
    yield node
    for child in node.children:
        yield from walk(child)


def parts(root: Node | None) -> Iterator[Call | Literal | Node]:
    """All nodes and expressions of a plan that may have an origin."""
    waiting: list[object] = [root]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tuple):
            waiting += part
        elif is_dataclass(part):
            if isinstance(part, Call | Literal | Node):
                yield part
            waiting += [getattr(part, each.name) for each in fields(part) if each.compare]


def is_collated(root: Node) -> bool:
    """Whether the plan computes with strings that are compared otherwise than by their bytes."""
    return any(isinstance(part, Call) and part.option("collation") is not None for part in parts(root))


def with_children(node: Some, children: Sequence[Node]) -> Some:
    """The node over other children of the same types, of which there must be as many."""
    if len(children) != len(node.children):
        raise ValueError(f"{type(node).__name__} has {len(node.children)} children, not {len(children)}")
    others = iter(children)
    return replace(node, **{name: _exchanged(getattr(node, name), others) for name in node.child_fields})


def rewritten(node: Some, rule: Callable[[Node], Node]) -> Some:
    """The node over its children, each as the rule has it.

    >>> leaf = Scan(types=(), source="r")
    >>> rewritten(Union(types=(), inputs=(leaf, leaf)), lambda child: replace(child, source="s")).inputs[1].source
    's'
    """
    return with_children(node, [rule(child) for child in node.children])


def _nodes(value: Node | Relation | tuple[Node | Relation, ...]) -> Iterator[Node]:
    """The nodes in a field that holds children."""
    match value:
        case tuple():
            for each in value:
                yield from _nodes(each)
        case Relation(body=body):
            yield body
        case Node():
            yield value


def _exchanged(value: Any, others: Iterator[Node]) -> Any:  # noqa: ANN401  (of the type it had)
    """The value of such a field with other nodes, in the same order."""
    match value:
        case tuple():
            return tuple(_exchanged(each, others) for each in value)
        case Relation():
            return replace(value, body=next(others))
    return next(others)


def cut(node: Some) -> Some:
    """The node over nothing but the types of its children."""
    return with_children(node, [Node(types=child.types) for child in node.children])


def picked(node: Node, columns: Sequence[int]) -> Node:
    """Some columns of the node; the node itself, if these are all of them."""
    if tuple(columns) == tuple(range(len(node.types))):
        return node
    types = tuple(node.types[i] for i in columns)
    return Project(types=types, child=node, expressions=tuple(map(Column, columns, types)))
