-- linear: the bag as it is
SELECT * FROM t;

-- linear: projection makes duplicates
SELECT b FROM t;

-- stateful: distinct rows
SELECT DISTINCT * FROM t;

-- stateful: union distinct
SELECT a, b FROM t UNION SELECT a, b FROM u;

-- linear: union all
SELECT a, b FROM t UNION ALL SELECT a, b FROM u UNION ALL SELECT * FROM empty;

-- stateful: intersect distinct
SELECT a, b FROM t INTERSECT SELECT a, b FROM u;

-- stateful: intersect all keeps the smaller count
SELECT a, b FROM t INTERSECT ALL SELECT a, b FROM u;

-- stateful: except distinct
SELECT a, b FROM t EXCEPT SELECT a, b FROM u;

-- stateful: except all subtracts counts
SELECT a, b FROM t EXCEPT ALL SELECT a, b FROM u;

-- stateful: the other way round
SELECT a, b FROM u EXCEPT ALL SELECT a, b FROM t;

-- stateful: except with an empty table
SELECT a, b FROM u EXCEPT ALL SELECT * FROM empty;

-- stateful: symmetric difference
(SELECT a, b FROM t EXCEPT SELECT a, b FROM u) UNION ALL (SELECT a, b FROM u EXCEPT SELECT a, b FROM t);

-- stateful: counting duplicates
SELECT a, b, c, count(*) AS n FROM t GROUP BY a, b, c;

-- stateful: rows that occur more than once
SELECT a, b FROM u GROUP BY a, b HAVING count(*) > 1;

-- stateful: union of a union
SELECT a FROM t UNION ALL (SELECT a FROM u UNION SELECT a FROM empty);

-- stateful: distinct on top of union all
SELECT DISTINCT b FROM (SELECT a, b FROM t UNION ALL SELECT a, b FROM u);

-- stateful: intersection of three
SELECT b FROM t INTERSECT SELECT b FROM u INTERSECT SELECT b FROM t WHERE a > 0;

-- stateful: set operations under an aggregate
SELECT count(*) AS n, min(b) AS low FROM (SELECT a, b FROM t EXCEPT SELECT a, b FROM u);

-- linear: values only
SELECT * FROM VALUES (1, 'one'), (2, 'two'), (2, 'two') AS v(n, word);

-- linear: a constant
SELECT 1 AS one, 'x' AS x, CAST(NULL AS INT) AS nothing;

-- linear: filter that is always unknown
SELECT * FROM t WHERE a = NULL;

-- stateful: product with values of which no column is read
SELECT a FROM t CROSS JOIN VALUES (1, 'one'), (2, 'two') AS v(n, word);

-- linear: elements for each of some values of which no column is read
SELECT e.x FROM VALUES (1), (2) AS v(n) LATERAL VIEW inline(array(named_struct('x', 1, 'y', 'a'), named_struct('x', 1, 'y', 'b'))) e AS x, y;
