"""Datalog in: programs of facts, rules and questions, as SQL for the tables and views that they define.

    reach(X, Y) :- edge(X, Y).                        SELECT … FROM edge
    reach(X, Z) :- reach(X, Y), edge(Y, Z).     →     UNION SELECT … FROM reach JOIN edge …

A predicate with facts alone is a table, one with rules a live view, and predicates that reach each other are one recursion.
"""

from headwater.frontend.datalog.reader import read_program
from headwater.frontend.datalog.rules import Defined, Question, Stated, translated

__all__ = ["Defined", "Question", "Stated", "read_program", "translated"]
