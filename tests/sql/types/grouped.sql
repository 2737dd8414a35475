-- stateful: sums of every width
SELECT flag, sum(tiny) AS t, sum(small) AS s, sum(whole) AS w, sum(money) AS m, avg(tiny) AS at, avg(money) AS am, count(*) AS n FROM numbers GROUP BY flag;

-- stateful: exact sums of wide decimals
SELECT sum(exact) AS e, avg(money) AS a, sum(CAST(exact AS DECIMAL(30, 10))) AS narrower FROM numbers WHERE k NOT IN ('max', 'min') OR k IS NULL;

-- stateful: extremes of every type
SELECT min(tiny) AS t, max(small) AS s, min(whole) AS w, max(big) AS b, min(exact) AS e, max(money) AS m, min(single) AS f, max(flag) AS g, min(k) AS k FROM numbers;

-- stateful: extremes of moments
SELECT min(d) AS d, max(ts) AS ts, min(local) AS l, max(span) AS s, count(DISTINCT d) AS n FROM moments;

-- stateful: group by a decimal
SELECT exact, count(*) AS n FROM numbers GROUP BY exact;

-- stateful: group by a boolean
SELECT flag, count(*) AS n, bool_and(whole > 0) AS b, bool_or(flag) AS o FROM numbers GROUP BY flag;

-- stateful: group by a tinyint and a float
SELECT tiny, single, count(*) AS n FROM numbers GROUP BY tiny, single;

-- stateful: group by moments
SELECT d, ts, local, span, count(*) AS n FROM moments GROUP BY d, ts, local, span;

-- stateful: distinct keys
SELECT DISTINCT k, flag FROM numbers;

-- stateful: join of different integer widths
SELECT a.k AS a, b.k AS b FROM numbers a JOIN numbers b ON a.tiny = b.big;

-- stateful: join of an integer with a decimal
SELECT a.k AS a, b.k AS b FROM numbers a JOIN numbers b ON a.whole = b.exact;

-- stateful: join on a boolean
SELECT a.k AS a, b.k AS b FROM numbers a JOIN numbers b ON a.flag = b.flag AND a.whole < b.whole;

-- stateful: join of a date with a timestamp
SELECT a.k AS a, b.k AS b FROM moments a JOIN moments b ON a.d = CAST(b.ts AS DATE);

-- stateful: join on a span
SELECT a.k AS a, b.k AS b FROM moments a JOIN moments b ON a.span <=> b.span;

-- stateful: join on odd names
SELECT a.`select`, b.`a b` FROM `odd names` a LEFT JOIN `odd names` b ON a.`select` = b.`a b` DIV 10;

-- stateful: group by odd names
SELECT `MiXeD` AS `group by`, sum(`a b`) AS `sum(*)` FROM `odd names` GROUP BY `MiXeD`;

-- stateful: decimals with aggregates and filter
SELECT sum(money) FILTER (WHERE flag) AS yes, sum(money) FILTER (WHERE NOT flag) AS no, count(*) FILTER (WHERE flag IS NULL) AS unknown FROM numbers;

-- stateful: top by decimal
SELECT k, exact FROM numbers ORDER BY exact DESC NULLS LAST, k NULLS FIRST LIMIT 3;

-- stateful: top by moment
SELECT k, ts FROM moments ORDER BY ts NULLS FIRST, k LIMIT 3;

-- stateful: sums of spans
SELECT k IS NULL AS nameless, sum(span) AS s, avg(span) AS a FROM moments WHERE k <> 'far' GROUP BY 1;

-- stateful: spread of integers and decimals
SELECT flag, round(stddev(whole), 6) AS s, round(var_pop(money), 6) AS v FROM numbers WHERE k NOT IN ('max', 'min') GROUP BY flag;

-- stateful: try_sum overflows to NULL
SELECT try_sum(big) AS s, try_avg(whole) AS a FROM numbers WHERE big >= 0;

-- stateful: intersection of types that widen
SELECT tiny AS x FROM numbers INTERSECT SELECT big FROM numbers WHERE flag;

-- linear: union that widens
SELECT k, tiny AS x FROM numbers UNION ALL SELECT k, exact FROM numbers;

-- stateful: scalar subqueries of several types
SELECT k, (SELECT max(d) FROM moments) AS d, (SELECT max(exact) FROM numbers WHERE k <> 'max') AS e, (SELECT min(flag) FROM numbers) AS f FROM numbers;

-- stateful: IN over decimals and integers
SELECT k FROM numbers WHERE exact IN (SELECT tiny FROM numbers) OR money NOT IN (SELECT money FROM numbers WHERE flag AND money IS NOT NULL);

-- touched groups: percentiles of integers and spans
SELECT flag, percentile(whole, 0.5) AS p, percentile_disc(0.5) WITHIN GROUP (ORDER BY small) AS d, median(tiny) AS m FROM numbers GROUP BY flag;

-- touched groups: collected types
SELECT flag, sort_array(collect_list(exact)) AS e, sort_array(collect_list(tiny)) AS t, sort_array(collect_set(money)) AS m FROM numbers GROUP BY flag;

-- touched groups: windows over decimals
SELECT k, exact, sum(money) OVER (ORDER BY money NULLS FIRST RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS near, max(exact) OVER (PARTITION BY flag) AS top FROM numbers;

-- touched groups: windows over moments
SELECT k, lag(d) OVER (ORDER BY k) AS previous, ts - lag(ts) OVER (ORDER BY k) AS gap, first_value(local) OVER (ORDER BY k) AS first FROM moments WHERE k NOT IN ('first', 'far');

-- stateful: a view of constants joined with a table
SELECT n.k, v.word FROM numbers n JOIN (VALUES (1, 'uno'), (2, 'due'), (3, 'tre')) AS v(i, word) ON n.tiny = v.i;

-- stateful: rollup over booleans and decimals
SELECT flag, money, count(*) AS n, sum(whole) AS s FROM numbers GROUP BY ROLLUP (flag, money);
