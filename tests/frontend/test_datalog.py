"""Datalog: programs against plain Python, and what is said of those that make no sense."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import headwater as hw
from headwater.cli import app
from headwater.errors import EvaluationFailed, InvalidProgram, InvalidQuery, NotStratified, RecursionLimit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def session(spark: SparkSession) -> Iterator[hw.Session]:
    with hw.connect(spark=spark) as session:
        session.create_table("link", "src STRING, dst STRING, cost INT")
        session.insert("link", [("a", "b", 1), ("b", "c", 1), ("c", "a", 1), ("c", "b", 5), ("d", "a", 2)])
        yield session


def test_facts_rules_and_questions(session: hw.Session) -> None:
    program = session.datalog(
        """
        % who is whose ancestor
        parent(ada, ben).  parent("ada", 'bo\\'b').  parent(ben, cy).   // names are texts
        ancestor(X, Y) :- parent(X, Y).
        ancestor(X, Z) :- ancestor(X, Y), parent(Y, Z).
        sibling(X, Y) :- parent(P, X), parent(P, Y), X != Y.
        ?- ancestor(ada, Who).
        ?- ancestor(ben, "bo'b").
        ?- parent(ada, ben).
        """
    )
    assert sorted(program.answers[0].rows()) == [("ben",), ("bo'b",), ("cy",)]
    assert [answer.rows() for answer in program.answers[1:]] == [[], [(True,)]]
    assert sorted(program.views["sibling"].rows()) == [("ben", "bo'b"), ("bo'b", "ben")]
    session.delete("parent", [("ada", "ben")])
    assert sorted(program.views["ancestor"].rows()) == [("ada", "bo'b"), ("ben", "cy")]


def test_arithmetic_comparison_and_functions(session: hw.Session) -> None:
    program = session.datalog(
        """
        path(S, D, C, 1) :- link(S, D, C).
        path(S, D, C, H) :- path(S, M, C1, H1), link(M, D, C2), H = H1 + 1, C = C1 + C2 * 2 - C2, H1 < 3, length(S) = 1.
        loud(U) :- link(S, _, _), U = upper(concat(S, "!")).
        """
    )
    links = [("a", "b", 1), ("b", "c", 1), ("c", "a", 1), ("c", "b", 5), ("d", "a", 2)]
    found = {(s, d, c, 1) for s, d, c in links}
    for _ in range(3):
        found |= {(s, d, c + w, h + 1) for s, m, c, h in found if h < 3 for x, d, w in links if x == m}
    assert Counter(program.views["path"].rows()) == Counter(found)
    assert sorted(program.views["loud"].rows()) == [("A!",), ("B!",), ("C!",), ("D!",)]


def test_negation_and_aggregates(session: hw.Session) -> None:
    program = session.datalog(
        """
        node(X) :- link(X, _, _).   node(X) :- link(_, X, _).
        reach(X, Y) :- link(X, Y, _).
        reach(X, Z) :- reach(X, Y), link(Y, Z, _).
        far(X, Y) :- node(X), node(Y), not reach(X, Y).
        sizes(X, count<Y>) :- reach(X, Y).
        cheapest(X, Y, min<C>) :- link(X, Y, C).
        cheapest(X, Z, min<C>) :- cheapest(X, Y, A), link(Y, Z, B), C = A + B.
        best(X, Y, min<C>) :- cheapest(X, Y, C).
        total(sum<C>, max<C>, count<*>) :- link(_, Y, C), !reach(Y, d).
        """
    )
    everything = {(x, y) for x in "abcd" for y in "abc"}
    assert set(program.views["reach"].rows()) == everything
    assert sorted(program.views["far"].rows()) == [(x, "d") for x in "abcd"]
    assert sorted(program.views["sizes"].rows()) == [(x, 3) for x in "abcd"]
    assert ("c", "b", 2) in program.views["best"].rows()
    assert program.views["total"].rows() == [(10, 5, 5)]
    session.delete("link", [("c", "a", 1)])
    assert set(program.views["reach"].rows()) == {(x, y) for x in "bc" for y in "bc"} | {
        ("a", "b"),
        ("a", "c"),
        ("d", "a"),
        ("d", "b"),
        ("d", "c"),
    }
    assert ("c", "b", 5) in program.views["best"].rows()
    assert sorted(program.views["sizes"].rows()) == [("a", 2), ("b", 2), ("c", 2), ("d", 3)]


def test_what_is_easily_got_wrong(session: hw.Session) -> None:
    """Names in another case, columns of one name, constants as groups, terms before their variables, and `_` in aggregates."""
    program = session.datalog(
        """
        paid(ann, 1, 5).  paid(ann, 2, 5).  paid(bob, 3, 7).
        reachesAll(X, Y) :- link(X, Y, _).
        reachesall(X, Z) :- reachesAll(X, Y), link(Y, Z, _).
        thrice(X, X_3, X) :- paid(X, X_3, _).
        marked(K, X, min<C>) :- link(X, _, C), K = 2.
        before(X) :- paid(X, N + 1, _), paid(_, N, _).
        total(X, sum<C>) :- paid(X, _, C).
        many(count<*>) :- link(_, _, _).
        """
    )
    answers = {name: sorted(view.rows()) for name, view in program.views.items()}
    assert answers["reachesAll"] == [(x, y) for x in "abcd" for y in "abc"]
    assert program.views["thrice"].schema.names == ["x", "x_3", "x_4"]
    assert answers["thrice"] == [("ann", 1, "ann"), ("ann", 2, "ann"), ("bob", 3, "bob")]
    assert answers["marked"] == [(2, "a", 1), (2, "b", 1), (2, "c", 1), (2, "d", 2)]
    assert answers["before"] == [("ann",), ("bob",)]
    assert answers["total"] == [("ann", 10), ("bob", 7)]
    assert answers["many"] == [(5,)]


def test_mutual_recursion(session: hw.Session) -> None:
    program = session.datalog(
        """
        even(a).
        even(Y) :- odd(X), link(X, Y, _).
        odd(Y) :- even(X), link(X, Y, _).
        """
    )
    assert sorted(program.views["even"].rows()) == [("a",), ("b",), ("c",)]
    session.delete("link", [("c", "a", 1)])
    assert (sorted(program.views["even"].rows()), sorted(program.views["odd"].rows())) == ([("a",), ("c",)], [("b",)])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("p(X) :- q(X).", r"line 1, column 9: there is no predicate, table or view 'q'"),
        ("p(X) :- link(X, Y).", "line 1, column 9: 'link' has 3 columns, and here 2"),
        ("p(1, 2).\np(3).", "line 2, column 1: 'p' has 2 columns, and here 1"),
        ("p(X, Y) :- link(X, _, _).", "line 1, column 6: Y has no value here"),
        ("p(X) :- link(X, _, _), not link(Z, X, _).", "line 1, column 33: Z has no value in a negation"),
        ("p(X) :- link(X, _, C), C < D.", "line 1, column 28: D has no value here"),
        ("p(X) :- link(X, _, _)", "line 1, column 22: expected a . at the end of a rule, but the program ends"),
        ("p(X) :-\n  link(X _, _).", r"line 2, column 10: expected a , or \), but there is '_'"),
        ("Path(X) :- link(X, _, _).", "line 1, column 1: expected a predicate: names of predicates begin with a small letter"),
        ("p(X) :- link(X, 'a, _).", "line 1, column 17: this text does not end"),
        ("p(X) :- link(X, _, _) & X.", "line 1, column 23: '&' means nothing here"),
        ("link(a, b, 1).", "line 1, column 1: 'link' is a table or view already"),
        ("p(X).", "line 1, column 1: a fact of 'p' consists of constants"),
        ("p(1). p(a).", "line 1, column 1: column 1 of 'p' is BIGINT and STRING in its facts"),
        ("p(X) :- link(X, _, _), 3.", "line 1, column 25: expected a comparison"),
        ("p(X) :- Link(X, _, _).", "line 1, column 13: expected .*: names of predicates begin with a small letter"),
        ("p(X) :- link(X, _, _), contains(X, 'a').", r"column 24: there is no predicate.* stands in .* contains\(…\) = true"),
        ("p(1).\np(9223372036854775808).", "line 2, column 3: 9223372036854775808 is no BIGINT"),
    ],
)
def test_bad_programs(session: hw.Session, text: str, said: str) -> None:
    epoch = session.epoch
    with pytest.raises(InvalidProgram, match=said):
        session.datalog(text)
    assert session.epoch == epoch


def test_what_the_engine_refuses_says_where(session: hw.Session) -> None:
    with pytest.raises(NotStratified, match="line 2, column 1, the rules of 'won': 'won' → 'won'"):
        session.datalog("\nwon(X) :- link(X, _, _).\nwon(X) :- link(X, Y, _), not won(Y).")
    with pytest.raises(NotStratified, match="line 1, column 1, the rules of 'won': 'won' → 'won', through negation"):
        session.datalog("won(X) :- link(X, Y, _), not won(Y).")
    with pytest.raises(NotStratified, match="the rules of 'a': 'a' → 'b' → 'a', through negation"):
        session.datalog("a(X) :- link(X, _, _), not b(X). b(X) :- link(X, _, _), not a(X).")
    with pytest.raises(InvalidQuery, match="line 1, column 1, the rules of 'p': the recursion of 'p' begins nowhere"):
        session.datalog("p(X) :- p(Y), link(X, Y, _).")
    with pytest.raises(NotStratified, match="the aggregate count"):
        session.datalog("n(X, 1) :- link(X, _, _). n(X, count<Y>) :- n(Y, _), link(X, Y, _).")
    with pytest.raises(InvalidQuery, match="line 1, column 13, the rules of 'p'"):
        session.datalog("q(1).       p(X) :- link(X, _, _), q(Y), Y + true > 1.")
    with pytest.raises(InvalidQuery, match="line 2, column 1, the question: "):
        session.datalog("q(1).\n?- q(X), X + true > 1.")
    with pytest.raises(RecursionLimit, match=r"line 1, column 1, the rules of 'n': .* about to add \(10001,\)"):
        session.datalog("n(1). n(X) :- n(Y), X = Y + 1.")
    with pytest.raises(EvaluationFailed, match="line 1, column 13, the rules of 'p': "):
        session.datalog("q(1).       p(Z) :- q(X), Z = 1 / (X - 1).")
    assert not session.views()
    assert list(session.tables()) == ["link"]


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "program.dl"
    file.write_text("p(X) :- q(X).")
    failed = CliRunner().invoke(app, ["datalog", str(file)])
    assert failed.exit_code == 1
    assert "line 1, column 9" in failed.output
