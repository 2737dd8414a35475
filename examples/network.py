"""A network that changes: who reaches whom, the best ways with the nodes on them, how many ways there are, what a cut does.

Run it: .venv/bin/python examples/network.py
"""

import headwater as hw

LINKS = [("A", "B", 5, 1), ("B", "C", 5, 1), ("C", "A", 5, 1), ("C", "B", 1, 1), ("A", "D", 20, 1), ("C", "D", 2, 1)]

with hw.connect() as s:
    s.create_table("link", "a STRING, b STRING, ms INT, hops INT")
    s.insert("link", LINKS)

    reach = s.create_view(
        "reach",
        """
        WITH RECURSIVE r(x, y) AS (SELECT a, b FROM link UNION SELECT r.x, l.b FROM r JOIN link l ON l.a = r.y)
        SELECT * FROM r
        """,
    )
    # Every way without a cycle, with its cost, its length and the nodes on it.
    s.create_view(
        "way",
        """
        WITH RECURSIVE w(x, y, ms, hops, nodes) AS (
            SELECT a, b, ms, 1, array(a, b) FROM link WHERE a <> b
            UNION
            SELECT w.x, l.b, w.ms + l.ms, w.hops + 1, concat(w.nodes, array(l.b)) FROM w JOIN link l ON l.a = w.y
            WHERE NOT array_contains(w.nodes, l.b)
        ) SELECT * FROM w
        """,
    )
    best = s.create_view("best", "SELECT x, y, min(ms) AS ms FROM way GROUP BY x, y")
    cheapest = s.create_view(
        "cheapest", "SELECT w.x, w.y, w.ms, w.nodes FROM way w JOIN best b ON b.x = w.x AND b.y = w.y AND b.ms = w.ms"
    )
    resilience = s.create_view("resilience", "SELECT x, y, count(*) AS ways FROM way GROUP BY x, y")
    # Cheapest and shortest at once, without listing the ways.
    both = s.create_view(
        "both",
        """
        WITH RECURSIVE w(x, y, ms, hops) AS (
            SELECT a, b, MIN(ms), MIN(hops) FROM link GROUP BY a, b
            UNION
            SELECT w.x, l.b, MIN(w.ms + l.ms), MIN(w.hops + 1) FROM w JOIN link l ON l.a = w.y GROUP BY w.x, l.b
        ) SELECT x, y, MIN(ms) AS ms, MIN(hops) AS hops FROM w GROUP BY x, y
        """,
    )
    horizon = s.create_view(
        "horizon",
        """
        WITH RECURSIVE h(y, hops) AS (
            SELECT 'A', 0 UNION SELECT l.b, h.hops + 1 FROM h JOIN link l ON l.a = h.y WHERE h.hops < 2
        ) SELECT y, MIN(hops) AS hops FROM h GROUP BY y ORDER BY hops, y
        """,
    )

    def show() -> None:
        print(len(reach), "pairs reach each other")
        print([row[2:] for row in cheapest.rows() if row[:2] == ("A", "D")])
        print([row for row in resilience.rows() if row[:2] == ("A", "D")])
        print([row for row in both.rows() if row[:2] == ("A", "D")])
        print(horizon.rows())

    show()
    s.delete("link", [("B", "C", 5, 1)])
    show()
