-- stateful: join multiplies copies
SELECT t.a, t.b, u.b AS ub FROM t JOIN u ON t.a = u.a;

-- stateful: null-safe join multiplies NULLs too
SELECT t.a, u.b FROM t JOIN u ON t.a <=> u.a;

-- stateful: null-safe join on both columns
SELECT t.a, t.b, t.c FROM t JOIN u ON t.a <=> u.a AND t.b <=> u.b;

-- stateful: left join of bags
SELECT t.a, t.c, u.b FROM t LEFT JOIN u ON t.a = u.a AND t.b = u.b;

-- stateful: right join of bags
SELECT t.c, u.a, u.b FROM t RIGHT JOIN u ON t.a = u.a;

-- stateful: full join of bags
SELECT t.a, t.b, t.c, u.a AS ua, u.b AS ub FROM t FULL JOIN u ON t.a = u.a AND t.b = u.b;

-- stateful: full join with an empty table
SELECT t.a, e.b FROM t FULL JOIN empty e ON t.a = e.a;

-- stateful: full join with a constant condition
SELECT t.a, e.b FROM t FULL JOIN empty e ON e.b = 'x';

-- stateful: full outer join without equality
SELECT t.a, u.a AS ua FROM t FULL JOIN u ON t.a < u.a;

-- stateful: left join without equality
SELECT t.a, t.b, u.a AS ua FROM t LEFT JOIN u ON t.a > u.a;

-- stateful: cross join of bags
SELECT t.a, e.b FROM t CROSS JOIN empty e;

-- stateful: semi join keeps copies
SELECT a, b, c FROM t LEFT SEMI JOIN u USING (a);

-- stateful: anti join keeps copies
SELECT a, b, c FROM t LEFT ANTI JOIN u USING (a);

-- stateful: NOT IN with NULLs in the row
SELECT a, b FROM t WHERE a NOT IN (SELECT a FROM u WHERE a IS NOT NULL);

-- stateful: NOT IN with NULLs in the set
SELECT a, b FROM t WHERE a NOT IN (SELECT a FROM u);

-- stateful: NOT IN an empty set keeps NULLs
SELECT a, b FROM t WHERE a NOT IN (SELECT a FROM empty);

-- stateful: NOT IN over pairs with NULLs
SELECT a, b FROM t WHERE (a, b) NOT IN (SELECT a, b FROM u);

-- stateful: correlated NOT IN
SELECT a, b FROM t WHERE t.a NOT IN (SELECT u.a FROM u WHERE u.b = t.b);

-- stateful: IN over pairs
SELECT a, b FROM t WHERE (a, b) IN (SELECT a, b FROM u);

-- stateful: EXISTS with an inequality
SELECT a, b FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a < t.a);

-- stateful: NOT EXISTS with an inequality
SELECT a, b FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a < t.a);

-- stateful: the three values of IN
SELECT a, a IN (SELECT a FROM u) AS found, a NOT IN (SELECT a FROM empty) AS absent FROM t;

-- stateful: EXISTS under NOT and OR
SELECT a, b FROM t WHERE NOT (EXISTS (SELECT 1 FROM u WHERE u.a = t.a) OR t.b IS NULL);

-- stateful: scalar subquery from an empty table
SELECT a, (SELECT max(a) FROM empty) AS top FROM u;

-- stateful: correlated count is zero, not NULL
SELECT a, b, (SELECT count(*) FROM empty e WHERE e.a = u.a) AS n FROM u;

-- stateful: correlated sum is NULL
SELECT a, b, (SELECT sum(a) FROM t WHERE t.b = u.b) AS n FROM u;

-- stateful: sums count copies
SELECT b, sum(a) AS s, sum(DISTINCT a) AS sd, count(a) AS n, count(DISTINCT a) AS nd, avg(a) AS m FROM t GROUP BY b;

-- stateful: extremes when copies leave
SELECT min(a) AS low, max(a) AS high, min(b) AS lb, max(b) AS hb FROM t;

-- stateful: spread counts copies
SELECT round(stddev_pop(a), 9) AS s, round(var_samp(c), 9) AS v FROM t;

-- stateful: rollup over NULL keys
SELECT a, b, count(*) AS n, grouping_id(a, b) AS g FROM t GROUP BY ROLLUP (a, b);

-- stateful: cube with a filter
SELECT a, b, sum(c) FILTER (WHERE c > 0) AS s FROM t GROUP BY CUBE (a, b);

-- stateful: global aggregate of an empty table
SELECT count(*) AS n, sum(a) AS s, max(b) AS m, bool_and(a > 0) AS p FROM empty;

-- stateful: grouped aggregate of an empty table
SELECT b, count(*) AS n FROM empty GROUP BY b;

-- stateful: limit over copies
SELECT a, b FROM t ORDER BY a DESC NULLS LAST, b NULLS FIRST LIMIT 4;

-- stateful: limit and offset cut through copies
SELECT a, b FROM u ORDER BY a NULLS FIRST, b NULLS FIRST LIMIT 3 OFFSET 2;

-- stateful: join of an aggregate with its own table
SELECT t.a, t.c, s.n FROM t JOIN (SELECT a, count(*) AS n FROM t GROUP BY a) s ON s.a <=> t.a;

-- touched groups: copies in a window
SELECT a, b, count(*) OVER (PARTITION BY a) AS n, rank() OVER (ORDER BY b NULLS LAST) AS r, sum(c) OVER (PARTITION BY b) AS s FROM t;

-- touched groups: row numbers over copies
SELECT a, row_number() OVER (PARTITION BY a ORDER BY a) AS r FROM u;

-- touched groups: collected copies
SELECT b, sort_array(collect_list(a)) AS list, sort_array(collect_set(a)) AS set, listagg(CAST(a AS STRING), '+') WITHIN GROUP (ORDER BY a) AS text FROM t GROUP BY b;

-- touched groups: mode, median and percentiles of copies
SELECT mode(a, true) AS m, median(a) AS mid, percentile_approx(a, 0.5) AS p FROM t;

-- touched groups: approximate distinct count
SELECT b, approx_count_distinct(a) AS n FROM t GROUP BY b;

-- linear: exploding copies
SELECT a, explode(array(b, 'k')) AS e FROM t;

-- linear: posexplode outer of nothing
SELECT a, pos, e FROM t LATERAL VIEW OUTER posexplode(CASE WHEN c > 0 THEN array(c, a) END) x AS pos, e;

-- linear: stack
SELECT stack(2, a, b, c, b) AS (n, s) FROM t;

-- stateful: two scalar subqueries over tables alike
SELECT (SELECT max(a) FROM u) AS of_u, (SELECT min(a) FROM empty) AS of_empty, (SELECT count(*) FROM u) AS n, (SELECT count(*) FROM empty) AS m;

-- stateful: joins of one table with two tables alike
SELECT t.a, u.b, e.b AS eb FROM t LEFT JOIN u ON t.a = u.a LEFT JOIN empty e ON t.a = e.a;

-- stateful: exists in two tables alike
SELECT a, b FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a) AND NOT EXISTS (SELECT 1 FROM empty e WHERE e.a = t.a);

-- stateful: union of two tables alike
SELECT * FROM u UNION SELECT * FROM empty;
