-- linear: integers widen
SELECT k, tiny + small AS a, CAST(tiny AS BIGINT) * big AS b, whole / 2 AS half, big DIV 3 AS third, whole % 2 AS odd, pmod(whole, 3) AS p FROM numbers WHERE k NOT IN ('max', 'min');

-- linear: bits
SELECT k, tiny & 3 AS a, small | 4 AS o, whole ^ 5 AS x, ~whole AS n, shiftleft(whole, 2) AS l, shiftright(big, 1) AS r, bit_count(big) AS c FROM numbers;

-- linear: wide decimals
SELECT k, exact + money AS sum, exact - 1 AS less, round(exact, 2) AS r, CAST(money AS DECIMAL(10, 4)) AS wide, money * money AS square FROM numbers WHERE k NOT IN ('max', 'min') OR k IS NULL;

-- linear: decimal division and remainder
SELECT k, money / 3 AS third, money % 0.07 AS rest, CAST(money AS INT) AS i, CAST(exact AS DOUBLE) AS d, floor(money) AS f, ceil(money) AS c FROM numbers;

-- linear: decimal comparison across scales
SELECT k FROM numbers WHERE exact > money OR money = 0.0500 OR exact = whole;

-- linear: try functions on overflow
SELECT k, try_add(whole, 1) AS a, try_multiply(big, 2) AS m, try_divide(whole, tiny) AS d, try_subtract(tiny, CAST(1 AS TINYINT)) AS s FROM numbers;

-- linear: casts between all numbers
SELECT k, try_cast(big AS INT) AS i, try_cast(whole AS TINYINT) AS t, CAST(tiny AS DOUBLE) AS d, CAST(whole AS DECIMAL(20, 2)) AS e, CAST(flag AS INT) AS f, CAST(whole AS BOOLEAN) AS b, CAST(single AS STRING) AS s FROM numbers;

-- linear: numbers as text
SELECT k, CAST(exact AS STRING) AS e, CAST(money AS STRING) AS m, CAST(big AS STRING) AS b, CAST(single AS STRING) AS s, CAST(flag AS STRING) AS f, hex(big) AS h FROM numbers;

-- linear: booleans
SELECT k, flag AND whole > 0 AS a, flag OR tiny IS NULL AS o, NOT flag AS n, flag IS TRUE AS t, flag IS NOT FALSE AS nf, flag = true AS e FROM numbers;

-- linear: dates at the edges
SELECT k, d, year(d) AS y, dayofweek(d) AS w, weekofyear(d) AS wk, unix_date(d) AS n, CAST(d AS STRING) AS s, CAST(d AS TIMESTAMP) AS ts FROM moments;

-- linear: date arithmetic at the edges
SELECT k, add_months(d, -12) AS a, date_sub(d, 1) AS b, last_day(d) AS l, trunc(d, 'YEAR') AS y, datediff(d, DATE'2000-01-01') AS n FROM moments WHERE k NOT IN ('first', 'far');

-- linear: timestamps at the edges
SELECT k, ts, local, CAST(ts AS STRING) AS s, date_trunc('MONTH', ts) AS m, hour(local) AS h, CAST(local AS DATE) AS d, unix_micros(ts) AS u FROM moments;

-- linear: spans
SELECT k, span, span * 1.5 AS more, span / 2 AS half, abs(span) AS a, CAST(span AS STRING) AS s, extract(DAY FROM span) AS d, signum(span) AS sign FROM moments;

-- linear: spans added
SELECT k, ts + span AS t, local - span AS l, d + INTERVAL '1' DAY AS next FROM moments WHERE k NOT IN ('first', 'far');

-- linear: make functions
SELECT k, make_date(2024, 2, 29) AS d, make_timestamp(2024, 1, 1, whole, 0, 0) AS t, make_dt_interval(1, 2, 3, 4.5) AS i, CAST(make_ym_interval(1, 2) AS STRING) AS ym FROM numbers WHERE whole BETWEEN 0 AND 5;

-- linear: odd identifiers
SELECT `select`, `größe`, `a b` + 1 AS `a b`, mixed FROM `odd names` WHERE `A B` > 5 OR `größe` IS NULL;

-- linear: keywords as aliases
SELECT k AS `from`, whole AS `group`, 1 AS `1`, 'x' AS `` FROM numbers WHERE whole = 1;

-- linear: width_bucket, factorial and friends
SELECT k, width_bucket(whole, 0, 10, 5) AS w, CASE WHEN whole BETWEEN 0 AND 20 THEN factorial(whole) END AS f, sign(money) AS s, positive(whole) AS p, e() > 2 AS e, pi() > 3 AS pi, equal_null(k, NULL) AS n FROM numbers;

-- linear: typeof
SELECT k, typeof(exact) AS e, typeof(single) AS s FROM numbers;
