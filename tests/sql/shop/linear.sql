-- linear: filter on a comparison
SELECT id, name FROM customers WHERE credit > 50;

-- linear: filter on NULL
SELECT * FROM customers WHERE city IS NULL OR joined IS NULL;

-- linear: decimal arithmetic keeps its scale
SELECT order_id, product, quantity * discount AS rebate, discount / 3 AS third, quantity % 3 AS rest, -discount AS negative FROM items;

-- linear: date parts
SELECT id, year(day) AS y, month(day) AS m, dayofweek(day) AS dow, quarter(day) AS q, dayofyear(day) AS doy, last_day(day) AS ultimo
FROM orders;

-- linear: date arithmetic
SELECT id, date_add(day, 30) AS due, add_months(day, 1) AS month_later, datediff(DATE'2025-01-01', day) AS days_left,
  trunc(day, 'MM') AS month_start, day + INTERVAL '1' YEAR AS year_later FROM orders;

-- linear: case with and without else
SELECT id, CASE WHEN price > 100 THEN 'dear' WHEN price > 10 THEN 'fair' ELSE 'cheap' END AS tag,
  CASE category WHEN 'home' THEN 1 WHEN 'office' THEN 2 END AS shelf FROM products;

-- linear: null functions
SELECT id, coalesce(city, 'nowhere') AS city, nullif(credit, 0.00) AS credit, nvl2(joined, 'known', 'unknown') AS k,
  ifnull(name, '?') AS name, city <=> NULL AS missing FROM customers;

-- linear: casts of decimals, dates and strings
SELECT id, CAST(price AS DOUBLE) AS d, CAST(price AS STRING) AS s, CAST(price AS INT) AS i, CAST(price AS DECIMAL(20, 5)) AS wide,
  CAST(id AS STRING) AS id_text FROM products;

-- linear: IN and BETWEEN, negated
SELECT id FROM orders WHERE status NOT IN ('void', 'open') AND day BETWEEN DATE'2024-01-01' AND DATE'2024-06-30';

-- linear: LIKE and string functions
SELECT id, upper(name) AS u, concat(name, '@', city) AS at, substring(name, 2, 2) AS middle, length(name) AS n FROM customers
WHERE name LIKE '%a%' OR name LIKE '_e_';

-- linear: union all of two tables
SELECT id, name, 'customer' AS kind FROM customers UNION ALL SELECT id, name, 'product' FROM products;

-- linear: union all of a table with itself doubles every row
SELECT order_id, product FROM items UNION ALL SELECT order_id, product FROM items WHERE quantity > 1;

-- linear: date formatting
SELECT id, date_format(day, 'yyyy/MM') AS ym, date_format(day, 'EEE') AS weekday, make_date(year(day), 1, 1) AS new_year FROM orders;

-- linear: rounding of decimals
SELECT id, round(price, 1) AS r, bround(price, 0) AS b, ceil(price) AS c, floor(price) AS f, abs(price - 20) AS distance FROM products;

-- linear: greatest and least ignore NULL
SELECT id, greatest(credit, 50.00) AS g, least(credit, 50.00, id) AS l FROM customers;

-- linear: a table as it is
TABLE products;

-- linear: a CTE used once
WITH cheap AS (SELECT * FROM products WHERE price < 50) SELECT id, name FROM cheap WHERE category <> 'home';

-- linear: generate a sequence of days
SELECT id, explode(sequence(day, date_add(day, 2))) AS d FROM orders WHERE day IS NOT NULL;

-- linear: values beside a table
SELECT id, name FROM products UNION ALL SELECT * FROM VALUES (1, 'one'), (2, NULL) AS v(id, name);

-- linear: nothing passes the filter
SELECT id FROM customers WHERE credit > 1 AND credit < 1;

-- linear: unpivot of two columns
SELECT * FROM (SELECT id, name, city FROM customers) UNPIVOT (value FOR attribute IN (name, city));

-- linear: unpivot including nulls
SELECT * FROM (SELECT id, name, city FROM customers) UNPIVOT INCLUDE NULLS (value FOR attribute IN (name AS n, city AS c));

-- linear: quoted and odd column names
SELECT id AS `order`, name AS `na me`, city AS `città`, credit AS `a.b` FROM customers WHERE id > 1;
