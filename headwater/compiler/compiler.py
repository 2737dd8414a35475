"""The compiler: one dataflow for all views, in which equal parts of different queries are one step with one state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from headwater.algebra import plan
from headwater.algebra.expressions import Column, Expression
from headwater.compiler import aggregates, joins, orders, paths, recursion, strategies
from headwater.compiler.clusters import absorbed, clustered, pair
from headwater.compiler.dataflow import Step
from headwater.compiler.estimates import Estimator
from headwater.compiler.linear import Engines, is_linear
from headwater.compiler.orders import Shape
from headwater.compiler.pruning import pruned
from headwater.compiler.raising import raised
from headwater.compiler.recipes import Mask, OfGroups, OfNode, fused, windowed
from headwater.errors import NotSupported, UnknownName
from headwater.operators.aggregate import Aggregate
from headwater.operators.annotate import Annotate
from headwater.operators.arrange import Arrange
from headwater.operators.fixpoint import Rows
from headwater.operators.join import Join, JoinKey
from headwater.operators.linear import Linear, Union
from headwater.operators.match import Match
from headwater.operators.multijoin import MultiJoin
from headwater.operators.ordering import Order, is_ordered
from headwater.operators.regroup import Regroup
from headwater.operators.scalar import Scalar
from headwater.operators.topk import TopK
from headwater.operators.values import Values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pyarrow as pa

    from headwater.compiler.estimates import Facts
    from headwater.compiler.orders import Classes
    from headwater.operators.operator import Choice, Key


@dataclass(frozen=True, eq=False)
class Known:
    """Steps that a compiler can use again: those that give the rows of nodes, and those that keep others by a key."""

    steps: Mapping[plan.Node, Step]
    arranged: Mapping[tuple[Step, Key], Step]


class Compiler:
    """Compiles nodes of the algebra into steps."""

    def __init__(self, engines: Engines, known: Known | None = None) -> None:
        self._engines = engines
        self._sources: Mapping[str, Step] = {}
        self._estimator = Estimator({}, engines)
        self._steps: dict[plan.Node, Step] = {} if known is None else dict(known.steps)
        self._arranged: dict[tuple[Step, Key], Step] = {} if known is None else dict(known.arranged)
        self._choices: dict[plan.Node, Choice] = {}

    @property
    def type_of(self) -> Callable[[Expression], pa.DataType]:
        """Tells the type of an expression's values."""
        return self._engines.type_of

    def root(self, node: plan.Node, sources: Mapping[str, Step]) -> Step:
        """The step that gives the rows of a query over these tables and views, by their names in lower case."""
        self._sources = sources
        joined = clustered(node, self._engines.type_of)
        return self.compile(aggregates.separated(pruned(raised(joined, self._estimator)), self._engines.type_of))

    def fork(self, facts: Mapping[str, Facts]) -> Compiler:
        """A compiler that knows the same steps, and some facts; what it learns and forgets, this one does not."""
        made = Compiler(self._engines, self.known)
        made._estimator = Estimator(facts, self._engines)
        return made

    @property
    def known(self) -> Known:
        """The steps it knows."""
        return Known(self._steps, self._arranged)

    def compile(self, node: plan.Node) -> Step:
        """The step that gives the node's rows."""
        known = self._steps.get(node)
        if known is None:
            known = self._compile(node)
            self._steps[node] = known
        return known

    def arrange(self, step: Step, key: Key) -> Step:
        """The step that keeps the rows of another by a key."""
        known = self._arranged.get((step, key))
        if known is None:
            known = Step(Arrange(step.types, key), (step,), "Arrange")
            self._arranged[step, key] = known
        return known

    def forget(self, live: Iterable[Step]) -> None:
        """Drops what no live step needs."""
        kept = set(live)
        self._steps = {node: step for node, step in self._steps.items() if step in kept}
        self._arranged = {key: step for key, step in self._arranged.items() if step in kept}
        # Facts hold on to the rows of an epoch that will pass.
        self._estimator = Estimator({}, self._engines)
        self._choices = {}

    def forget_if(self, stale: Callable[[plan.Node], bool]) -> None:
        """Drops the steps of stale nodes, so that they are compiled anew."""
        self._steps = {node: step for node, step in self._steps.items() if not stale(node)}

    def _compile(self, node: plan.Node) -> Step:  # noqa: C901, PLR0911, PLR0912  (one case a kind)
        match node:
            case plan.Filter(child=plan.Window() as window):
                return self._window(window, node)
        if is_linear(node):
            return self._linear(node)
        match node:
            case plan.Scan(source=source):
                if source.lower() not in self._sources:
                    raise UnknownName(f"there is no table or view {source!r}")
                return self._sources[source.lower()]
            case plan.Values(rows=rows):
                return Step(Values(node.types, rows), (), "Values")
            case plan.Union():
                return Step(Union(node.types, len(node.inputs)), tuple(map(self.compile, node.inputs)), "Union")
            case plan.Join():
                return self._join(node)
            case plan.MultiJoin():
                return self._multijoin(node)
            case plan.Aggregate():
                return self._aggregate(node)
            case plan.Window():
                return self._window(node)
            case plan.Sort():
                return self.compile(node.child)
            case plan.Limit():
                return self._limit(node)
            case plan.Scalar():
                return self._step(Scalar(node.types), (node.child,), "Scalar")
            case plan.Opaque():
                return self._opaque(node)
            case plan.Recursive():
                return Step(Rows(node.types, node.relation), (), "Rows so far")
            case plan.Fixpoint():
                if node.strategy != "counting":
                    return strategies.derived(node, self._whole, self._engines)
                return recursion.compiled(node, self.compile, self._engines.type_of)
            case plan.Explained(child=child, annotation=annotation):
                return Step(Annotate(node.types), (self.compile(child), self.compile(annotation)), "Annotate")
        raise TypeError(type(node).__name__)

    def _whole(self, node: plan.Node) -> Step:
        """A step that keeps the rows of a node by all their columns."""
        return self.arrange(self.compile(node), tuple(range(len(node.types))))

    def _step(
        self, operator: Join | Match | Aggregate | TopK | Regroup | Scalar, inputs: Iterable[plan.Node], label: str
    ) -> Step:
        """A step whose inputs are arranged as the operator asks."""
        steps = []
        for child, key in zip(inputs, operator.arranged_by(), strict=True):
            step = self.compile(child)
            steps.append(step if key is None else self.arrange(step, key))
        return Step(operator, tuple(steps), label)

    def _linear(self, node: plan.Node) -> Step:
        chain = [node]
        while self._fuses(chain[-1].children[0]):
            chain.append(chain[-1].children[0])
        joined = absorbed(chain[-1])
        if joined is not None:
            # A join gives any of its columns in any order.
            chain.pop()
            if not chain:
                return self.compile(joined)
        below = self.compile(chain[-1].children[0] if joined is None else joined)
        label = " ∘ ".join(type(part).__name__ if not isinstance(part, plan.Opaque) else part.name for part in chain)
        return Step(Linear(node.types, fused(chain[::-1], self._engines)), (below,), label)

    def _fuses(self, node: plan.Node) -> bool:
        """Whether the node is linear and computed for the one above it alone."""
        of_windows = isinstance(node, plan.Filter) and isinstance(node.child, plan.Window)
        return is_linear(node) and not of_windows and node not in self._steps

    # -- joins

    def _join(self, node: plan.Join) -> Step:
        if node.kind in ("left", "right", "full", "single"):
            return self.compile(joins.expand_outer(node))
        not_in = joins.null_aware(node)
        if not_in is not None:
            return self.compile(not_in)
        condition = joins.analyse(node)
        if node.kind != "inner":
            return self._match(node, condition)
        if condition.left:
            return self.compile(pair(node, self._engines.type_of))
        stage = None
        if condition.rest is not None:
            stage = fused([plan.Filter(types=node.types, child=node, condition=condition.rest)], self._engines)
        operator = Join(node.types, JoinKey((), (), ()), len(node.left.types), len(node.right.types), stage)
        return self._step(operator, (node.left, node.right), "Join")

    def _multijoin(self, node: plan.MultiJoin) -> Step:
        shape = Shape(node, [self._estimator.estimate(child) for child in node.inputs])
        decision = orders.decide(
            shape, cache(lambda relation, classes: self._existing(node, shape, relation, classes) is not None)
        )
        choice = self._choices.pop(node, None) or paths.described(node, decision, known=shape.known)
        if decision.tree is not None:
            tree, inner = paths.binary(self._as_kept(node, shape, decision.tree), decision.tree)
            self._choices |= dict.fromkeys(inner, choice)
            return self.compile(tree)
        # The largest comes last: while tables are loaded, it alone looks the others up.
        ranks = sorted(range(shape.count), key=lambda i: (shape.rows[i], i))
        needs = sorted({(hop.relation, hop.key) for hops in decision.paths for hop in hops}, key=lambda n: (n[0], sorted(n[1])))
        inputs = [(i, classes, self._kept(node, shape, i, classes)) for i, classes in needs]
        routes = paths.Routes(node, inputs)
        operator = MultiJoin(
            types=node.types,
            relations=tuple(ranks.index(i) for i, _, _ in inputs),
            keys=tuple(arranged.key for _, _, arranged in inputs),
            paths=tuple(routes.path(i, decision.paths[i]) for i in ranks),
            lineage=paths.lineage(node),
            choice=choice,
            filtered=node.filtered,
        )
        return Step(operator, tuple(arranged.step for _, _, arranged in inputs), "Join")

    def _as_kept(self, node: plan.MultiJoin, shape: Shape, tree: orders.Order) -> plan.MultiJoin:
        """The join with its inputs as they are kept already, where the tree can make use of that."""
        inputs = list(node.inputs)
        for relation, classes in ((tree.start, tree.hops[0].key), *((hop.relation, hop.key) for hop in tree.hops)):
            found = self._existing(node, shape, relation, classes)
            if found is not None:
                inputs[relation] = found.node
        return replace(node, inputs=tuple(inputs))

    def _kept(self, node: plan.MultiJoin, shape: Shape, relation: int, classes: Classes) -> paths.Arranged:
        """A relation of a join by some classes of equal columns: as it is kept already, or else just so."""
        found = self._existing(node, shape, relation, classes)
        if found is not None:
            return found
        child, key = node.inputs[relation], shape.columns(relation, classes)
        return paths.Arranged(child, self.arrange(self.compile(child), key), key, {i: i for i in range(len(child.types))})

    def _existing(self, node: plan.MultiJoin, shape: Shape, relation: int, classes: Classes) -> paths.Arranged | None:
        return self._find(node.inputs[relation], shape.columns(relation, classes), paths.never_null(node, relation))

    def _find(self, node: plan.Node, key: Key, never_null: frozenset[int]) -> paths.Arranged | None:
        """Where the rows of the node are kept by these columns already, perhaps with more columns and rows with NULLs."""
        for base, columns in paths.wider(node, never_null):
            step = self._sources.get(base.source.lower()) if isinstance(base, plan.Scan) else self._steps.get(base)
            wanted = {columns[i] for i in key}
            for (kept, by), arranged in self._arranged.items():
                if kept is step and len(by) == len(wanted) == len(key) and set(by) == wanted:
                    return paths.Arranged(plan.picked(base, [*columns.values()]), arranged, by, columns)
        return None

    def _match(self, node: plan.Join, condition: joins.Condition) -> Step:
        left, left_key = self._keyed(node.left, condition.left)
        fits = None if condition.rest is None else Mask(condition.rest, self._engines)
        if fits is None:
            right, key = self._counted(node.right, left_key, condition)
        else:
            keyed, right_key = self._keyed(node.right, condition.right)
            right, key = self.arrange(self.compile(keyed), right_key), JoinKey(left_key, right_key, condition.null_safe)
        labels = {"semi": "Semi join", "anti": "Anti join", "existence": "Existence join", "check": "At most one match"}
        operator = Match(node.types, node.kind, key, len(node.left.types), fits, len(node.right.types))
        return Step(operator, (self.arrange(self.compile(left), key.left), right), labels[node.kind])

    def _counted(self, node: plan.Node, left: Key, condition: joins.Condition) -> tuple[Step, JoinKey]:
        """A side of which keys and counts matter: kept as that, or by a key that no two rows share, if it is so already."""
        types = tuple(self._engines.type_of(part) for part in condition.right)
        keys = plan.Project(types=types, child=node, expressions=condition.right)
        every = tuple(range(len(types)))
        found = None
        if any(unique <= set(every) for unique in self._estimator.estimate(keys).unique):
            found = self._find(keys, every, frozenset(i for i, safe in enumerate(condition.null_safe) if not safe))
        if found is None:
            return self.arrange(self.compile(keys), every), JoinKey(left, every, condition.null_safe)
        order = [next(i for i, column in found.columns.items() if column == by) for by in found.key]
        safe = tuple(condition.null_safe[i] for i in order)
        return found.step, JoinKey(tuple(left[i] for i in order), found.key, safe)

    def _keyed(self, node: plan.Node, key: tuple[Expression, ...]) -> tuple[plan.Node, Key]:
        """The node with a column for each expression of the key, and where these are."""
        extra = [part for part in key if not isinstance(part, Column)]
        if not extra:
            return node, tuple(part.index for part in key)  # type: ignore[union-attr]
        width = len(node.types)
        types = node.types + tuple(self._engines.type_of(part) for part in extra)
        columns = tuple(Column(i, kind) for i, kind in enumerate(node.types))
        places = iter(range(width, len(types)))
        keyed = plan.Project(types=types, child=node, expressions=columns + tuple(extra))
        return keyed, tuple(part.index if isinstance(part, Column) else next(places) for part in key)

    # -- aggregates, windows, limits

    def _aggregate(self, node: plan.Aggregate) -> Step:
        lowered = aggregates.lower(node, self._engines.type_of)
        functions, holistic = aggregates.functions_for(lowered, node)
        if holistic is None:
            operator: Aggregate | Regroup = Aggregate(lowered.below.types, lowered.keys, functions)
        else:
            operator = self._regrouped_aggregate(lowered, holistic)
        step = self._step(operator, (lowered.below,), "Aggregate" if node.outputs else "Distinct")
        for scalar in lowered.scalars:
            step = self._beside(step, self.compile(scalar))
        picked = plan.Project(types=node.types, child=plan.Node(types=step.types), expressions=lowered.above)
        if all(isinstance(e, Column) and e.index == i for i, e in enumerate(lowered.above)) and node.types == step.types:
            return step
        return Step(Linear(node.types, fused([picked], self._engines)), (step,), "Project")

    def _regrouped_aggregate(self, lowered: aggregates.Lowered, holistic: str) -> Regroup:
        types = lowered.below.types[: lowered.keys] + tuple(self._engines.type_of(call) for call in lowered.calls)
        evaluate = OfGroups(lowered.keys, lowered.calls, types, self._engines)
        key = tuple(range(lowered.keys))
        why = f"{holistic} has no inverse: only the groups that changed are evaluated again"
        return Regroup(types, (lowered.below.types,), key, key, evaluate, why, "spark")

    def _beside(self, left: Step, right: Step) -> Step:
        operator = Join(left.types + right.types, JoinKey((), (), ()), len(left.types), len(right.types))
        return Step(operator, (self.arrange(left, ()), self.arrange(right, ())), "Join")

    def _window(self, node: plan.Window, passing: plan.Filter | None = None) -> Step:
        """Windows over one partitioning, one upon another, and a filter above them, are one evaluation; its result is kept."""
        windows = [node]
        while isinstance(windows[-1].child, plan.Window) and windows[-1].child.partition == node.partition:
            windows.append(windows[-1].child)
        below = windows[-1].child
        evaluate = windowed(windows[::-1], passing, self._engines)
        key = tuple(part.index for part in node.partition if isinstance(part, Column))
        why = "window functions: only the partitions that changed are evaluated again"
        operator = Regroup(node.types, (below.types,), key, key, evaluate, why, evaluate.engine)
        return self._step(operator, (below,), "Window" if passing is None else "Filter ∘ Window")

    def _limit(self, node: plan.Limit) -> Step:
        child, key = self._keyed(node.child, tuple(sort.expression for sort in node.order))
        if not all(is_ordered(child.types[i]) for i in key):
            raise NotSupported("ORDER BY a nested value with LIMIT is not supported; order by a field of it")
        order = tuple(Order(i, s.descending, s.nulls_first) for i, s in zip(key, node.order, strict=True))
        limited = self._step(TopK(child.types, order, node.count, node.offset, node.best), (child,), "Top-k")
        if child is node.child:
            return limited
        width = len(node.types)
        columns = tuple(Column(i, kind) for i, kind in enumerate(node.types))
        picked = plan.Project(types=node.types, child=plan.Node(types=child.types), expressions=columns[:width])
        return Step(Linear(node.types, fused([picked], self._engines)), (limited,), "Project")

    def _opaque(self, node: plan.Opaque) -> Step:
        types = tuple(child.types for child in node.inputs)
        why = f"{node.name} has no incremental rule: Spark recomputes it"
        operator = Regroup(node.types, types, (), (), OfNode(plan.cut(node), self._engines), why, "spark", whole=True)
        return self._step(operator, node.inputs, node.name)
