-- stateful: revenue by category
SELECT p.category, sum(i.quantity * p.price) AS revenue, count(*) AS lines FROM items i JOIN products p ON p.id = i.product GROUP BY p.category;

-- stateful: having
SELECT c.name, sum(i.quantity * p.price * (1 - coalesce(i.discount, 0))) AS revenue
FROM customers c JOIN orders o ON o.customer = c.id JOIN items i ON i.order_id = o.id JOIN products p ON p.id = i.product
GROUP BY c.name HAVING sum(i.quantity * p.price) > 100;

-- stateful: global aggregate over a table that becomes empty
SELECT count(*) AS n, count(credit) AS known, sum(credit) AS total, min(joined) AS first, max(joined) AS last, avg(credit) AS mean FROM customers;

-- stateful: average of decimals
SELECT category, avg(price) AS mean, sum(price) AS total, count(price) AS n FROM products GROUP BY category;

-- stateful: count distinct
SELECT status, count(DISTINCT customer) AS customers, count(*) AS n FROM orders GROUP BY status;

-- stateful: several distinct aggregates
SELECT count(DISTINCT customer) AS c, count(DISTINCT day) AS d, count(DISTINCT customer, status) AS cs, sum(DISTINCT customer) AS s FROM orders;

-- stateful: filter clause
SELECT customer, count(*) FILTER (WHERE status = 'paid') AS paid, count(*) FILTER (WHERE status = 'open') AS open, count(*) AS n
FROM orders GROUP BY customer;

-- stateful: distinct with a filter
SELECT count(DISTINCT customer) FILTER (WHERE status = 'paid') AS payers, sum(id) FILTER (WHERE customer IS NULL) AS nobody FROM orders;

-- stateful: group by an expression
SELECT year(day) AS y, month(day) AS m, count(*) AS n FROM orders GROUP BY year(day), month(day);

-- stateful: group by alias and ordinal
SELECT date_format(day, 'yyyy-MM') AS ym, status, count(*) AS n FROM orders GROUP BY ym, 2;

-- stateful: group by all
SELECT city, count(*) AS n, max(credit) AS best FROM customers GROUP BY ALL;

-- stateful: rollup
SELECT category, name, sum(price) AS total, grouping(category) AS gc, grouping_id() AS gid FROM products GROUP BY ROLLUP (category, name);

-- stateful: cube
SELECT status, month(day) AS m, count(*) AS n FROM orders GROUP BY CUBE (status, month(day));

-- stateful: grouping sets
SELECT customer, status, count(*) AS n, min(day) AS first FROM orders GROUP BY GROUPING SETS ((customer), (status), (customer, status), ());

-- stateful: rollup with having on grouping
SELECT city, count(*) AS n FROM customers GROUP BY ROLLUP (city) HAVING grouping(city) = 1 OR count(*) > 1;

-- touched groups: pivot
SELECT * FROM (SELECT customer, status, id FROM orders) PIVOT (count(id) FOR status IN ('paid', 'open', 'void'));

-- touched groups: pivot with two aggregates
SELECT * FROM (SELECT i.order_id, p.category, i.quantity FROM items i JOIN products p ON p.id = i.product)
PIVOT (sum(quantity) AS total, max(quantity) AS most FOR category IN ('home' AS home, 'sport' AS sport));

-- stateful: distinct
SELECT DISTINCT city FROM customers;

-- stateful: distinct over two columns of a join
SELECT DISTINCT c.city, p.category FROM customers c JOIN orders o ON o.customer = c.id JOIN items i ON i.order_id = o.id JOIN products p ON p.id = i.product;

-- stateful: aggregate of an aggregate
SELECT n, count(*) AS customers FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) GROUP BY n;

-- stateful: group by without aggregates
SELECT city FROM customers GROUP BY city;

-- stateful: min and max of strings and dates
SELECT status, min(day) AS first, max(day) AS last, min(CAST(customer AS STRING)) AS low FROM orders GROUP BY status;

-- stateful: min and max together with having
SELECT category FROM products GROUP BY category HAVING max(price) - min(price) > 50;

-- stateful: boolean aggregates
SELECT customer, bool_and(status = 'paid') AS all_paid, bool_or(status = 'open') AS some_open, every(day IS NOT NULL) AS dated,
  some(day > DATE'2024-03-01') AS late, count_if(status = 'paid') AS paid FROM orders GROUP BY customer;

-- stateful: aggregate over an outer join
SELECT c.id, c.name, count(o.id) AS orders, max(o.day) AS last FROM customers c LEFT JOIN orders o ON o.customer = c.id GROUP BY c.id, c.name;

-- stateful: having without group by
SELECT sum(quantity) AS q FROM items HAVING count(*) > 5;

-- stateful: group by a constant
SELECT 'all' AS what, count(*) AS n FROM items GROUP BY 'all';

-- touched groups: max_by and min_by
SELECT customer, max_by(id, day) AS latest, min_by(id, day) AS earliest FROM orders WHERE day IS NOT NULL GROUP BY customer;

-- touched groups: collect_list sorted
SELECT customer, sort_array(collect_list(id)) AS ids, sort_array(collect_set(status)) AS states FROM orders GROUP BY customer;

-- touched groups: array_agg of structs
SELECT o.customer, sort_array(array_agg(struct(i.product, i.quantity))) AS basket FROM orders o JOIN items i ON i.order_id = o.id GROUP BY o.customer;

-- touched groups: listagg in order
SELECT city, listagg(name, ', ') WITHIN GROUP (ORDER BY name) AS names FROM customers GROUP BY city;

-- touched groups: listagg distinct, descending
SELECT listagg(DISTINCT status, '|') WITHIN GROUP (ORDER BY status DESC) AS states FROM orders;

-- touched groups: median and percentile of decimals
SELECT category, median(price) AS mid, percentile(price, 0.9) AS p90, percentile_cont(0.25) WITHIN GROUP (ORDER BY price) AS q1,
  percentile_disc(0.5) WITHIN GROUP (ORDER BY price) AS d FROM products GROUP BY category;

-- touched groups: mode
SELECT mode() WITHIN GROUP (ORDER BY status) AS commonest FROM orders;

-- touched groups: any_value where it cannot vary
SELECT c.id, any_value(c.name) AS name, first(c.city) AS city, last(c.credit) AS credit, count(*) AS n
FROM customers c JOIN orders o ON o.customer = c.id GROUP BY c.id;

-- stateful: sums of integers and bigints
SELECT product, sum(quantity) AS q, sum(CAST(quantity AS BIGINT) * 1000000000) AS big FROM items GROUP BY product;

-- stateful: group key that is a struct
SELECT struct(city, year(joined)) AS k, count(*) AS n FROM customers GROUP BY struct(city, year(joined));

-- stateful: ungrouped lateral aggregate beside the table
WITH totals AS (SELECT customer, count(*) AS n FROM orders GROUP BY customer)
SELECT a.customer, a.n, b.n AS same FROM totals a JOIN totals b ON a.n = b.n AND a.customer < b.customer;
