-- stateful: a filter comes before the argument
SELECT c, sum(1 / a) FILTER (WHERE a > 0) AS s, avg(10 div a) FILTER (WHERE a > 0) AS m, max(5 % a) FILTER (WHERE a <> 0) AS r
FROM asks GROUP BY c;

-- touched groups: a filter comes before what is collected, and before its order
SELECT c, sort_array(collect_list(1 div a) FILTER (WHERE a > 0)) AS l,
  listagg(c, ',') WITHIN GROUP (ORDER BY 10 div a) FILTER (WHERE a > 0) AS o FROM asks GROUP BY c;

-- stateful: conditions guard what is summed
SELECT c, sum(CASE WHEN a > 0 THEN 10 div a END) AS x, sum(if(a = 0, 0, 10 div a)) AS y, sum(try_divide(1, a)) AS z,
  sum(coalesce(nullif(a, 0), 10 div (a + 1))) AS w FROM asks GROUP BY c;

-- linear: AND and OR guard what follows
SELECT a, a > 0 AND 10 div a > 2 AS p, a = 0 OR 10 div a > 2 AS q, nvl2(nullif(a, 0), 10 div a, -1) AS r FROM asks
WHERE a = 0 OR 100 div a > 1;

-- stateful: a join guards its condition
SELECT asks.a, bids.b FROM asks JOIN bids ON asks.a = bids.a AND asks.a > 0 AND 10 div asks.a > 0;

-- stateful: a left join guards its condition
SELECT asks.a, bids.b FROM asks LEFT JOIN bids ON asks.a > 0 AND bids.b < 100 div asks.a;

-- touched groups: distinct numbers in their order, joined as text
SELECT listagg(DISTINCT a, ',') WITHIN GROUP (ORDER BY a DESC) AS l FROM asks;

-- touched groups: the same by group, beside a sum
SELECT c, listagg(DISTINCT b, ',') WITHIN GROUP (ORDER BY b) AS l, sum(b) AS s FROM asks GROUP BY c;

-- touched groups: sketches of two tables, merged
SELECT kll_sketch_get_n_bigint(kll_merge_agg_bigint(s)) AS n, kll_sketch_get_quantile_bigint(kll_merge_agg_bigint(s), 1.0) AS most
FROM (SELECT kll_sketch_agg_bigint(a) AS s FROM asks UNION ALL SELECT CAST(NULL AS BINARY) UNION ALL SELECT kll_sketch_agg_bigint(b) FROM asks WHERE b > 0);

-- linear: an empty array has no rows
SELECT a, explode(array()) AS e FROM asks;

-- linear: an empty array in a column
SELECT a, array() AS e, explode_outer(array()) AS n FROM asks;

-- recomputed: an empty map has no rows
SELECT a, explode(map()) FROM asks;

-- stateful: a filter comes before an argument that only Spark evaluates
SELECT c, max(initcap(c)) FILTER (WHERE a > 1) AS m, sum(shiftleft(a, 1)) FILTER (WHERE b IS NOT NULL) AS s, count(*) AS n FROM asks GROUP BY c;

-- touched groups: the same with nested and exact values
SELECT max(map_keys(str_to_map(c))) FILTER (WHERE a > 1) AS m, percentile(CAST(shiftleft(b, 1) AS DECIMAL(9, 2)), 0.5) FILTER (WHERE a < 4) AS p FROM asks;

-- stateful: an outer join pads what Spark goes on with
SELECT initcap(asks.c) AS c, coalesce(initcap(bids.c), 'none') AS d, shiftleft(bids.b, 1) AS e FROM asks LEFT JOIN bids ON asks.a = bids.a AND bids.b > asks.b;
