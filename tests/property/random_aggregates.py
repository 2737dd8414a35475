"""Random aggregate and window functions whose values do not depend on the order of the rows."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from random_expressions import Expressions, Scope, Term
from random_values import FLAT, NUMBERS, ORDERED

# no more rows than this come together in a query, so a sum is no greater than this times the greatest value
MOST_ROWS = 10**5


class Aggregates(Expressions):
    """Draws aggregates and window functions."""

    def aggregate(self, scope: Scope) -> Term:
        """An aggregate, sometimes with a FILTER."""
        made = self.pick([self._count, self._numeric, self._numeric, self._extreme, self._holistic, self._logical])(scope)
        if self.chance(20) and " WITHIN GROUP" not in made.sql and not made.sql.startswith(("round(", "sort_array(")):
            return replace(made, sql=f"{made.sql} FILTER (WHERE {self.predicate(scope, 1)})")
        return made

    def _any(self, scope: Scope, kinds: tuple[str, ...]) -> Term:
        """A term of one of the kinds, best of one that is there."""
        present = sorted({term.kind for term in scope if term.kind in kinds})
        return self.term(self.pick(present) if present else kinds[0], scope, 1)

    def _count(self, scope: Scope) -> Term:
        value, other = self._any(scope, ORDERED).sql, self._any(scope, ORDERED).sql
        forms = ["count(*)", f"count({value})", f"count(DISTINCT {value})", f"count(DISTINCT {value}, {other})"]
        return Term(self.pick(forms), "bigint", MOST_ROWS)

    def _numeric(self, scope: Scope) -> Term:
        value = self._any(scope, NUMBERS)
        if value.kind == "double" and not value.exact:
            value = Term(f"CAST({self.leaf('int', scope).sql} AS DOUBLE)", "double", 2**31)
        result = "bigint" if value.kind == "int" else value.kind
        mean = "decimal" if value.kind == "decimal" else "double"
        bound = value.bound * MOST_ROWS
        number = self._any(scope, ("int", "bigint")).sql
        moments = [f"{name}({value.sql})" for name in ("stddev", "var_pop", "var_samp", "skewness", "kurtosis")]
        moments += [f"{name}({value.sql}, {number})" for name in ("corr", "covar_pop", "regr_slope")]
        return self.pick(
            [
                Term(f"sum({value.sql})", result, bound),
                Term(f"avg({value.sql})", mean, value.bound, exact=False),
                Term(f"sum(DISTINCT {value.sql})", result, bound),
                Term(f"avg(DISTINCT {value.sql})", mean, value.bound, exact=False),
                # where the true value is 0, neither side is within any ratio of it
                Term(f"round({self.pick(moments)}, 6)", "double", 10**6, exact=False),
            ]
        )

    def _extreme(self, scope: Scope) -> Term:
        value = self._any(scope, ORDERED)
        return replace(value, sql=f"{self.pick(['min', 'max'])}({value.sql})")

    def _logical(self, scope: Scope) -> Term:
        condition = self.predicate(scope, 1)
        return self.pick(
            [
                Term(f"bool_and({condition})", "boolean"),
                Term(f"bool_or({condition})", "boolean"),
                Term(f"count_if({condition})", "bigint", MOST_ROWS),
            ]
        )

    def _holistic(self, scope: Scope) -> Term:
        number, value = self._any(scope, ("int", "bigint")), self._any(scope, FLAT)
        texts = [term.sql for term in scope if term.kind == "string"]
        least = self.pick(["min_by", "max_by"])
        forms = [Term(f"listagg({text}, '|') WITHIN GROUP (ORDER BY {text})", "string") for text in texts[:2]]
        forms += [Term(f"listagg(DISTINCT {text}, '') WITHIN GROUP (ORDER BY {text})", "string") for text in texts[:2]]
        return self.pick(
            [
                *forms,
                Term(f"sort_array(collect_list({self.leaf('int', scope).sql}))", "array"),
                Term(f"sort_array(collect_set({self.leaf('int', scope).sql}))", "array"),
                Term(f"percentile({number.sql}, 0.5)", "double", number.bound, exact=False),
                Term(f"median({number.sql})", "double", number.bound, exact=False),
                replace(value, sql=f"mode() WITHIN GROUP (ORDER BY {value.sql})"),
                replace(number, sql=f"{least}({number.sql}, struct({value.sql}, {number.sql}))"),
                replace(number, sql=f"{self.pick(['bit_and', 'bit_or', 'bit_xor'])}({number.sql})", bound=2 * number.bound + 1),
            ]
        )

    # -- window functions

    def window(self, scope: Scope) -> Term:
        """A window function over rows in a total order, or one for which ties do not matter."""
        partition = self.some(scope, 0, 2)
        over = f"PARTITION BY {', '.join(term.sql for term in partition)} " if partition else ""
        total = ", ".join(f"{term.sql}{self._direction()}" for term in self.draw(st.permutations(scope)))
        partial = f"{self.pick(scope).sql}{self._direction()}"
        value = self.pick(scope)
        forms = [
            Term(f"row_number() OVER ({over}ORDER BY {total})", "int", MOST_ROWS),
            Term(f"rank() OVER ({over}ORDER BY {partial})", "int", MOST_ROWS),
            Term(f"dense_rank() OVER ({over}ORDER BY {partial})", "int", MOST_ROWS),
            Term(f"ntile({self.draw(st.integers(1, 3))}) OVER ({over}ORDER BY {total})", "int", 3),
            Term(f"percent_rank() OVER ({over}ORDER BY {partial})", "double", 1, exact=False),
            Term(f"cume_dist() OVER ({over}ORDER BY {partial})", "double", 1, exact=False),
            replace(value, sql=f"{self.pick(['lag', 'lead'])}({value.sql}, {self._distance()}) OVER ({over}ORDER BY {total})"),
            replace(value, sql=f"first_value({value.sql}) OVER ({over}ORDER BY {total})"),
            replace(value, sql=f"last_value({value.sql}) OVER ({over}ORDER BY {total} {self._rows()})"),
            replace(value, sql=f"nth_value({value.sql}, 2) OVER ({over}ORDER BY {total})"),
        ]
        return self.pick(forms) if self.chance(50) else self._windowed_aggregate(scope, over, total, partial)

    def _windowed_aggregate(self, scope: Scope, over: str, total: str, partial: str) -> Term:
        number, value = self._any(scope, NUMBERS), self.pick(scope)
        if number.kind == "double" and not number.exact:
            number = self.leaf("int", scope)
        made = self.pick(
            [
                Term("count(*)", "bigint", MOST_ROWS),
                Term(f"count({value.sql})", "bigint", MOST_ROWS),
                Term(f"sum({number.sql})", "bigint" if number.kind == "int" else number.kind, number.bound * MOST_ROWS),
                replace(value, sql=f"min({value.sql})"),
                replace(value, sql=f"max({value.sql})"),
                Term(f"avg({number.sql})", "decimal" if number.kind == "decimal" else "double", number.bound, exact=False),
            ]
        )
        distance = [term.sql for term in scope if term.kind == "int"]
        orders = [f"ORDER BY {name} RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING" for name in distance[:1]]
        orders += ["", f"ORDER BY {partial}", f"ORDER BY {total} {self._rows()}", f"ORDER BY {total}"]
        return replace(made, sql=f"{made.sql} OVER ({over}{self.pick(orders)})")

    def _direction(self) -> str:
        return self.pick(["", " DESC", " NULLS LAST", " DESC NULLS FIRST"])

    def _distance(self) -> int:
        return self.draw(st.integers(1, 2))

    def _rows(self) -> str:
        low = self.pick(["UNBOUNDED PRECEDING", "1 PRECEDING", "CURRENT ROW", "2 PRECEDING"])
        high = self.pick(["CURRENT ROW", "1 FOLLOWING", "UNBOUNDED FOLLOWING"])
        return f"ROWS BETWEEN {low} AND {high}"
