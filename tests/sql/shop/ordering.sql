-- stateful: top three by price
SELECT id, name, price FROM products ORDER BY price DESC NULLS LAST, id LIMIT 3;

-- stateful: limit with offset
SELECT id, name FROM customers ORDER BY name LIMIT 3 OFFSET 2;

-- stateful: offset alone
SELECT id FROM orders ORDER BY id OFFSET 4;

-- stateful: order by an expression that is not shown
SELECT id, name FROM products ORDER BY -price NULLS FIRST, id DESC LIMIT 4;

-- linear: order by without limit
SELECT id, day FROM orders ORDER BY day DESC NULLS LAST, id;

-- stateful: top customers by revenue
SELECT c.id, sum(i.quantity * p.price) AS revenue FROM customers c JOIN orders o ON o.customer = c.id JOIN items i ON i.order_id = o.id
JOIN products p ON p.id = i.product GROUP BY c.id ORDER BY revenue DESC NULLS LAST, c.id LIMIT 2;

-- stateful: limit inside a subquery
SELECT o.id, c.name FROM orders o JOIN (SELECT id, name FROM customers ORDER BY credit DESC NULLS LAST, id LIMIT 3) c ON o.customer = c.id;

-- linear: limit zero
SELECT id FROM customers ORDER BY id LIMIT 0;

-- stateful: limit beyond the end
SELECT id FROM customers ORDER BY id LIMIT 1000;

-- stateful: top of a union
SELECT name FROM customers UNION ALL SELECT name FROM products ORDER BY name LIMIT 5;

-- stateful: distinct, then the first two
SELECT DISTINCT city FROM customers ORDER BY city NULLS LAST LIMIT 2;

-- stateful: order by ordinal
SELECT city, count(*) AS n FROM customers GROUP BY city ORDER BY 2 DESC, 1 NULLS FIRST LIMIT 2;

-- touched groups: top two per category
SELECT * FROM (SELECT id, category, price, row_number() OVER (PARTITION BY category ORDER BY price DESC NULLS LAST, id) AS r FROM products) WHERE r <= 2;

-- touched groups: top per group by qualify
SELECT id, customer, day FROM orders QUALIFY row_number() OVER (PARTITION BY customer ORDER BY day DESC NULLS LAST, id) = 1;

-- touched groups: running revenue
SELECT o.id, o.day, sum(o.id) OVER (ORDER BY o.day, o.id) AS running FROM orders o;

-- touched groups: ranks with ties
SELECT id, category, price, rank() OVER (PARTITION BY category ORDER BY price) AS r, dense_rank() OVER (PARTITION BY category ORDER BY price) AS d,
  percent_rank() OVER (PARTITION BY category ORDER BY price) AS pr, cume_dist() OVER (PARTITION BY category ORDER BY price) AS cd FROM products;

-- touched groups: lag and lead
SELECT id, customer, lag(day) OVER (PARTITION BY customer ORDER BY id) AS previous, lead(id, 1, -1) OVER (PARTITION BY customer ORDER BY id) AS next FROM orders;

-- touched groups: share of the category
SELECT id, category, price / sum(price) OVER (PARTITION BY category) AS share FROM products WHERE price > 0;

-- touched groups: moving average over rows
SELECT id, avg(credit) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS mean FROM customers;

-- touched groups: window over a range of days
SELECT id, count(*) OVER (ORDER BY day RANGE BETWEEN INTERVAL '30' DAY PRECEDING AND CURRENT ROW) AS recent FROM orders WHERE day IS NOT NULL;

-- touched groups: window over an aggregate
SELECT city, count(*) AS n, rank() OVER (ORDER BY count(*) DESC) AS r FROM customers GROUP BY city;

-- touched groups: ntile, nth_value, first and last
SELECT id, ntile(3) OVER (ORDER BY id) AS third, nth_value(name, 2) OVER (ORDER BY id) AS second,
  first_value(name) OVER (ORDER BY id) AS first, last_value(name) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS last
FROM customers;
