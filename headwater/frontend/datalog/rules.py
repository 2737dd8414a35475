"""Rules to SQL: what is joined, what is compared, what is negated.

    p(X, Z) :- q(X, Y), r(Y, Z), Z > 1, not s(X).
      →  SELECT t0.a, t1.d FROM q AS t0 JOIN r AS t1 WHERE t0.b = t1.c AND t1.d > 1 AND NOT EXISTS (SELECT 1 FROM s … = t0.a)

A variable is the first column it stands at; at the others it must be equal. In the head, `min<C>` and `max<C>` are taken over
all solutions of the body, `count<C>` counts different values, `count<*>`, `sum<C>` and `avg<C>` are taken over its different
solutions, to which each `_` belongs. Predicates are sets. Users' names are quoted and their texts are literals: nothing of
them is pasted.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING

from headwater.frontend.datalog.reader import error_at
from headwater.frontend.datalog.syntax import Aggregate, Atom, Comparison, Constant, Function, Goal, Variable
from headwater.frontend.statements import quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.errors import InvalidProgram
    from headwater.frontend.datalog.syntax import Program, Rule, Term

    Columns = Mapping[str, tuple[str, ...]]

_BIGINT = 1 << 63
_TYPES = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "STRING"}


@dataclass(frozen=True)
class Stated:
    """A predicate of facts alone: a table, with its rows."""

    name: str
    columns: str
    rows: tuple[tuple[object, ...], ...]


@dataclass(frozen=True)
class Defined:
    """A predicate with rules: a view, by its query; `at` says where its rules begin."""

    name: str
    query: str
    at: int


@dataclass(frozen=True)
class Question:
    """What is asked, by its query; `at` says where."""

    query: str
    at: int


def translated(program: Program, tables: Columns) -> tuple[list[Stated], list[Defined], list[Question]]:
    """What the program states, defines (each after what it reads) and asks, over tables and views given by their columns."""
    return _Translation(program, tables).all()


class _Translation:
    def __init__(self, program: Program, tables: Columns) -> None:
        self._program = program
        self._rules: dict[str, list[Rule]] = {}
        spelt: dict[str, str] = {}
        for rule in program.rules:
            name = spelt.setdefault(rule.head.predicate.lower(), rule.head.predicate)
            self._rules.setdefault(name, []).append(rule)
        self._spelt = spelt
        self._columns: dict[str, tuple[str, ...]] = {name.lower(): columns for name, columns in tables.items()}
        for name, rules in self._rules.items():
            if name.lower() in self._columns:
                raise self._error(
                    rules[0].head.at, f"{name!r} is a table or view already; insert rows into it, or define another predicate"
                )
        for name, rules in self._rules.items():
            self._columns[name.lower()] = _names(rules)
            for rule in rules:
                self._require_width(name, len(rule.head.terms), rule.head.at)

    def all(self) -> tuple[list[Stated], list[Defined], list[Question]]:
        facts = [name for name, rules in self._rules.items() if not any(rule.body for rule in rules)]
        stated = [self._stated(name) for name in facts]
        groups = _groups({name: self._read(name) for name in self._rules if name not in facts})
        defined = [self._defined(name, group) for group in groups for name in group]
        return stated, defined, [Question(self._select(goal), goal.at) for goal in self._program.goals]

    def _read(self, name: str) -> set[str]:
        atoms = [part for rule in self._rules[name] for part in rule.body if isinstance(part, Atom)]
        return {self._spelt.get(atom.predicate.lower(), atom.predicate) for atom in atoms}

    # -- facts

    def _stated(self, name: str) -> Stated:
        rows = []
        for rule in self._rules[name]:
            row = []
            for term in rule.head.terms:
                if not isinstance(term, Constant):
                    raise self._error(rule.head.at, f"a fact of {name!r} consists of constants; a rule has a body after :-")
                if isinstance(term.value, int) and not -_BIGINT <= term.value < _BIGINT:
                    raise self._error(
                        term.at, f"{term.value} is no BIGINT; write it as {float(term.value)!r}, a DOUBLE, or as a text"
                    )
                row.append(term.value)
            rows.append(tuple(row))
        kinds = [self._kind(name, i, [row[i] for row in rows]) for i in range(len(rows[0]))]
        columns = ", ".join(f"{quote(c)} {kind}" for c, kind in zip(self._columns[name.lower()], kinds, strict=True))
        typed = [
            tuple(float(v) if k == "DOUBLE" and v is not None else v for v, k in zip(row, kinds, strict=True)) for row in rows
        ]
        return Stated(name, columns, tuple(dict.fromkeys(typed)))

    def _kind(self, name: str, column: int, values: Sequence[object]) -> str:
        kinds = {_TYPES[type(value)] for value in values if value is not None}
        if kinds == {"BIGINT", "DOUBLE"}:
            return "DOUBLE"
        if len(kinds) > 1:
            raise self._error(
                self._rules[name][0].head.at, f"column {column + 1} of {name!r} is {' and '.join(sorted(kinds))} in its facts"
            )
        return next(iter(kinds), "STRING")

    # -- rules

    def _defined(self, name: str, group: Sequence[str]) -> Defined:
        at = self._rules[name][0].head.at
        if len(group) == 1 and name not in self._read(name):
            selects = [self._select(rule) for rule in self._rules[name]]
            query = "\nUNION\n".join(selects) if len(selects) > 1 else _distinct(selects[0])
            columns = ", ".join(f"{quote(column)}" for column in self._columns[name.lower()])
            return Defined(name, f"SELECT * FROM (\n{query}\n) AS {quote(name)}({columns})", at)
        relations = []
        for member in group:
            columns = ", ".join(map(quote, self._columns[member.lower()]))
            selects = [self._select(rule) for rule in self._rules[member]]
            united = "\nUNION\n".join(selects)
            relations.append(f"{quote(member)}({columns}) AS (\n{united}\n)")
        return Defined(name, f"WITH RECURSIVE {', '.join(relations)}\nSELECT * FROM {quote(name)}", at)

    def _select(self, rule: Rule | Goal) -> str:
        """The solutions of a body, as the head wants them; of a question, the values of its variables."""
        scope = _Scope(self, rule.body)
        if isinstance(rule, Goal):
            shown = [f"{sql} AS {quote(name)}" for name, sql in scope.values.items()] or ["true AS `true`"]
            return f"SELECT DISTINCT {', '.join(shown)}{scope.tail()}"
        names = self._columns[rule.head.predicate.lower()]
        aggregates = [term for term in rule.head.terms if isinstance(term, Aggregate)]
        if not aggregates:
            terms = [scope.sql(term) for term in rule.head.terms if not isinstance(term, Aggregate)]
            return f"SELECT {_aliased(terms, names)}{scope.tail()}"
        tail = scope.tail()
        if any(aggregate.name in ("sum", "avg") or aggregate.term is None for aggregate in aggregates):
            solution = [*scope.values.values(), *scope.anonymous] or ["true"]
            inner = ", ".join(f"{sql} AS {quote(f'v{i}')}" for i, sql in enumerate(solution))
            for i, variable in enumerate(scope.values):
                scope.values[variable] = f"s.{quote(f'v{i}')}"
            tail = f" FROM (SELECT DISTINCT {inner}{tail}) AS s"
        shown = [self._aggregate(term, scope) if isinstance(term, Aggregate) else scope.sql(term) for term in rule.head.terms]
        # Spark takes a whole number in GROUP BY for the number of a column.
        keys = [scope.sql(term) for term in rule.head.terms if not (isinstance(term, Aggregate) or scope.is_constant(term))]
        grouped = f" GROUP BY {', '.join(keys)}" if keys else " HAVING count(*) > 0"
        return f"SELECT {_aliased(shown, names)}{tail}{grouped}"

    def _aggregate(self, aggregate: Aggregate, scope: _Scope) -> str:
        if aggregate.term is None:
            return "count(*)"
        inner = scope.sql(aggregate.term)
        return f"count(DISTINCT {inner})" if aggregate.name == "count" else f"{aggregate.name}({inner})"

    # -- what the scopes of rules need

    def columns_of(self, atom: Atom) -> tuple[str, ...]:
        if atom.predicate.lower() not in self._columns:
            known = ", ".join(repr(name) for name in self._columns) or "none"
            raise self._error(
                atom.at,
                f"there is no predicate, table or view {atom.predicate!r}; there are: {known}. "
                f"A function stands in a comparison, as in {atom.predicate}(…) = true",
            )
        self._require_width(atom.predicate, len(atom.terms), atom.at)
        return self._columns[atom.predicate.lower()]

    def _require_width(self, name: str, width: int, at: int) -> None:
        expected = len(self._columns[name.lower()])
        if width != expected:
            raise self._error(at, f"{name!r} has {expected} columns, and here {width}")

    def _error(self, at: int, message: str) -> InvalidProgram:
        return error_at(self._program.text, at, message)

    def unbound(self, variable: Variable, where: str) -> InvalidProgram:
        hint = "it must stand in a predicate of the body that is not negated, or be given a value by ="
        return self._error(variable.at, f"{variable.name} has no value {where}: {hint}")


class _Scope:
    """One body: which column each variable is, what is read, and what must hold."""

    def __init__(self, translation: _Translation, body: Sequence[Atom | Comparison]) -> None:
        self._translation = translation
        self.values: dict[str, str] = {}
        self.anonymous: list[str] = []
        self._constants: set[str] = set()
        self._read: list[str] = []
        self._conditions: list[str] = []
        computed = [pair for atom in body if isinstance(atom, Atom) and not atom.negated for pair in self._join(atom)]
        waiting = [part for part in body if isinstance(part, Comparison)]
        while waiting:
            ready = [part for part in waiting if self._assign(part)]
            if not ready:
                break
            waiting = [part for part in waiting if part not in ready]
        for place, term in computed:
            self._conditions.append(f"{place} = {self.sql(term)}")
        for part in waiting:
            operator = "<>" if part.operator == "!=" else part.operator
            self._conditions.append(f"{self.sql(part.left)} {operator} {self.sql(part.right)}")
        for atom in body:
            if isinstance(atom, Atom) and atom.negated:
                self._negate(atom)

    def tail(self) -> str:
        """FROM and WHERE."""
        read = f" FROM {' CROSS JOIN '.join(self._read)}" if self._read else ""
        return read + (f" WHERE {' AND '.join(self._conditions)}" if self._conditions else "")

    def _join(self, atom: Atom) -> list[tuple[str, Term]]:
        """Joins what the atom reads; gives the columns that must equal terms, which may need variables of other atoms."""
        alias = f"t{len(self._read)}"
        columns = self._translation.columns_of(atom)
        self._read.append(f"{quote(atom.predicate)} AS {alias}")
        computed: list[tuple[str, Term]] = []
        for term, column in zip(atom.terms, columns, strict=True):
            place = f"{alias}.{quote(column)}"
            if not isinstance(term, Variable):
                computed.append((place, term))
            elif term.name == "_":
                self.anonymous.append(place)
            elif term.name in self.values:
                self._conditions.append(f"{place} = {self.values[term.name]}")
            else:
                self.values[term.name] = place
        return computed

    def _assign(self, part: Comparison) -> bool:
        """Gives a variable without a value the other side of an equality, if that has one."""
        if part.operator != "=":
            return False
        for variable, term in ((part.left, part.right), (part.right, part.left)):
            if isinstance(variable, Variable) and variable.name not in (*self.values, "_") and self._has_value(term):
                self.values[variable.name] = f"({self.sql(term)})"
                if self.is_constant(term):
                    self._constants.add(variable.name)
                return True
        return False

    def is_constant(self, term: Term) -> bool:
        """Whether a term is a constant, or a variable that was given one."""
        return isinstance(term, Constant) or (isinstance(term, Variable) and term.name in self._constants)

    def _has_value(self, term: Term) -> bool:
        match term:
            case Variable(name=name):
                return name in self.values
            case Function(arguments=arguments):
                return all(map(self._has_value, arguments))
        return True

    def _negate(self, atom: Atom) -> None:
        alias = "n"
        columns = self._translation.columns_of(atom)
        same = []
        for term, column in zip(atom.terms, columns, strict=True):
            if not (isinstance(term, Variable) and term.name == "_"):
                same.append(f"{alias}.{quote(column)} = {self.sql(term, 'in a negation')}")
        where = f" WHERE {' AND '.join(same)}" if same else ""
        self._conditions.append(f"NOT EXISTS (SELECT 1 FROM {quote(atom.predicate)} AS {alias}{where})")

    def sql(self, term: Term, where: str = "here") -> str:
        match term:
            case Variable(name=name):
                if name not in self.values:
                    raise self._translation.unbound(term, where)
                return self.values[name]
            case Constant(value=value):
                return _literal(value)
            case Function(name="+" | "-" | "*" | "/" as operator, arguments=arguments):
                parts = [self.sql(argument, where) for argument in arguments]
                return f"({f' {operator} '.join(parts)})" if len(parts) > 1 else f"({operator}{parts[0]})"
            case Function(name=name, arguments=arguments):
                return f"{quote(name)}({', '.join(self.sql(argument, where) for argument in arguments)})"


def _literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value!r}D"
        case int():
            return str(value)
    escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _aliased(expressions: Sequence[str], names: Sequence[str]) -> str:
    return ", ".join(f"{sql} AS {quote(name)}" for sql, name in zip(expressions, names, strict=True))


def _distinct(select: str) -> str:
    return select.replace("SELECT ", "SELECT DISTINCT ", 1)


def _names(rules: Sequence[Rule]) -> tuple[str, ...]:
    """Columns are named after the variables of the first rule, or by their number."""
    names: list[str] = []
    for i, term in enumerate(rules[0].head.terms):
        inner = term.term if isinstance(term, Aggregate) else term
        name = inner.name.lower() if isinstance(inner, Variable) and inner.name != "_" else f"c{i + 1}"
        names.append(next(free for free in chain([name], (f"{name}_{j}" for j in count(i + 1))) if free not in names))
    return tuple(names)


def _groups(read: Mapping[str, set[str]]) -> list[list[str]]:
    """Predicates that reach each other together, each group after those it reads."""
    reached = {name: set(found) & set(read) for name, found in read.items()}
    for middle, beyond in reached.items():
        for found in reached.values():
            if middle in found:
                found.update(beyond)
    pending = list(read)
    ordered: list[list[str]] = []
    done: set[str] = set()
    while pending:
        groups = ([n for n in pending if n == name or (n in reached[name] and name in reached[n])] for name in pending)
        group = next(g for g in groups if set().union(*(reached[n] for n in g)) - set(g) <= done)
        ordered.append(group)
        done |= set(group)
        pending = [name for name in pending if name not in done]
    return ordered
