-- touched groups: the least bid for an ask, by a column that is not given
SELECT * FROM asks, LATERAL (SELECT c FROM bids WHERE bids.a = asks.a ORDER BY b LIMIT 1) AS s;

-- touched groups: the second one
SELECT * FROM asks, LATERAL (SELECT c FROM bids WHERE bids.a = asks.a ORDER BY b DESC LIMIT 1 OFFSET 1) AS s;

-- touched groups: a correlated IN with an order and a limit
SELECT * FROM asks WHERE a IN (SELECT b % 4 FROM bids WHERE bids.a = asks.a ORDER BY c DESC LIMIT 1);

-- touched groups: NOT IN with an order and an offset
SELECT * FROM asks WHERE c NOT IN (SELECT c FROM bids WHERE bids.a = asks.a ORDER BY b OFFSET 1);

-- touched groups: a scalar subquery ordered by an expression
SELECT a, (SELECT c FROM bids WHERE bids.a = asks.a ORDER BY b % 50 DESC, b LIMIT 1) AS best FROM asks;

-- recomputed: the nearest bid, for which Spark names rows by uuid
SELECT asks.a, asks.b, bids.b AS bid FROM asks JOIN bids EXACT NEAREST 1 BY DISTANCE abs(asks.b * 7 - bids.b);

-- linear: LATERAL (SELECT *) gives no columns
SELECT * FROM asks, LATERAL (SELECT *);

-- stateful: a table named within SET only
FROM asks |> SET a = (SELECT max(b) FROM bids);

-- stateful: a table named in the last of many columns
SELECT a, a AS a1, a AS a2, a AS a3, a AS a4, a AS a5, a AS a6, a AS a7, a AS a8, a AS a9, a AS a10, a AS a11, a AS a12, a AS a13,
  a AS a14, a AS a15, a AS a16, a AS a17, a AS a18, a AS a19, a AS a20, a AS a21, a AS a22, a AS a23, a AS a24, a AS a25, a AS a26,
  (SELECT max(b) FROM bids) AS most FROM asks;

-- stateful: values of two subqueries that both have
SELECT (SELECT min(a) FROM asks) AS v FROM bids INTERSECT SELECT (SELECT min(a) FROM bids) FROM asks;

-- stateful: values that the other does not have
SELECT (SELECT min(a) FROM asks) AS v, b FROM bids EXCEPT SELECT (SELECT max(a) FROM bids), b FROM asks;

-- recomputed: a scalar subquery in ORDER BY
SELECT a FROM asks ORDER BY (SELECT max(b) FROM bids), a;
