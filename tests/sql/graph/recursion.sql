-- stateful: numbers up to a bound
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 7) SELECT i FROM n;

-- stateful: paths of up to four edges, as often as there are ways
WITH RECURSIVE p(node, hops) AS (SELECT id, 0 FROM nodes WHERE color = 'red' UNION ALL
SELECT e.target, p.hops + 1 FROM p JOIN edges e ON e.source = p.node WHERE p.hops < 4) SELECT node, hops FROM p;

-- stateful: the same with its base behind, and a condition of its own
WITH RECURSIVE p(node, cost) AS (SELECT source, CAST(0 AS BIGINT) FROM edges WHERE weight = 1 UNION ALL
SELECT e.target, p.cost + e.weight FROM p JOIN edges e ON e.source = p.node AND e.weight > 1 WHERE p.cost < 12) SELECT * FROM p;

-- stateful: ways counted above the recursion
WITH RECURSIVE p(start, node, hops) AS (SELECT id, id, 0 FROM nodes UNION ALL
SELECT p.start, e.target, p.hops + 1 FROM p JOIN edges e ON e.source = p.node WHERE p.hops < 3)
SELECT start, node, count(*) AS ways, min(hops) AS shortest FROM p GROUP BY start, node;

-- stateful: a recursion joined with tables and ordered
WITH RECURSIVE p(node, hops) AS (SELECT id, 0 FROM nodes WHERE id = 1 UNION ALL
SELECT e.target, p.hops + 1 FROM p JOIN edges e ON e.source = p.node WHERE p.hops < 3)
SELECT n.label, p.hops FROM p JOIN nodes n ON n.id = p.node ORDER BY hops, label LIMIT 4;

-- stateful: strings that grow
WITH RECURSIVE w(s) AS (SELECT label FROM nodes WHERE label IS NOT NULL UNION ALL
SELECT concat(s, s) FROM w WHERE length(s) < 5) SELECT s, length(s) AS n FROM w;

-- stateful: two recursions beside each other
WITH RECURSIVE a(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM a WHERE i < 3),
b(j) AS (SELECT CAST(weight AS INT) FROM edges WHERE weight < 3 UNION ALL SELECT j + 3 FROM b WHERE j < 5)
SELECT i, j FROM a JOIN b ON i = j % 4;
