-- stateful: five relations in a row
SELECT c.name, p.category, i.quantity, o.day FROM customers c JOIN orders o ON o.customer = c.id JOIN items i ON i.order_id = o.id
  JOIN products p ON p.id = i.product JOIN customers d ON d.city = c.city;

-- stateful: nothing of the joined rows is shown
SELECT count(*) AS n FROM customers c JOIN orders o ON o.customer = c.id JOIN items i ON i.order_id = o.id JOIN products p ON p.id = i.product;

-- stateful: a triangle
SELECT a.id AS a, b.id AS b, o.id AS o FROM customers a JOIN customers b ON a.city = b.city JOIN orders o ON o.customer = a.id AND o.customer = b.id;

-- stateful: one value for all
SELECT o.id, i.product, x.quantity FROM orders o JOIN items i ON i.order_id = o.id JOIN items x ON x.order_id = o.id AND x.order_id = i.order_id;

-- stateful: the same table four times
SELECT a.id AS a, b.id AS b, c.id AS c, d.id AS d FROM products a JOIN products b ON a.category = b.category
  JOIN products c ON b.price = c.price JOIN products d ON c.category <=> d.category WHERE a.id < b.id;

-- stateful: NULL is equal to NULL
SELECT a.id AS a, b.id AS b, c.id AS c FROM orders a JOIN orders b ON a.customer <=> b.customer JOIN orders c ON b.status <=> c.status AND c.day <=> a.day;

-- stateful: equal by one, perhaps both NULL by the other
SELECT a.id AS a, b.id AS b, c.id AS c FROM orders a JOIN orders b ON a.customer = b.customer JOIN customers c ON c.id <=> b.customer;

-- stateful: two columns of one table must be equal
SELECT o.id, p.id AS p, i.quantity FROM items i JOIN orders o ON o.id = i.order_id JOIN products p ON p.id = i.product AND p.id = i.quantity;

-- stateful: more than equal
SELECT c.name, o.id, p.name AS product FROM customers c JOIN orders o ON o.customer = c.id AND o.day > c.joined
  JOIN items i ON i.order_id = o.id JOIN products p ON p.id = i.product AND p.price * i.quantity > coalesce(c.credit, 0);

-- stateful: keys are computed
SELECT c.id, o.id AS o, p.id AS p FROM customers c JOIN orders o ON month(o.day) = month(c.joined) JOIN products p ON p.id = o.customer + 9
  JOIN items i ON CAST(i.product AS BIGINT) = CAST(p.id AS BIGINT);

-- stateful: what is above may fail on rows that never were
SELECT o.id, p.price, 100 / o.id AS part FROM orders o JOIN items i ON i.order_id = o.id JOIN products p ON p.id = i.product
  JOIN customers c ON c.id = o.customer;

-- stateful: a semi join below joins
SELECT c.name, p.name AS product FROM customers c JOIN (SELECT * FROM orders o WHERE EXISTS (SELECT 1 FROM items x WHERE x.order_id = o.id AND x.quantity > 1)) o
  ON o.customer = c.id JOIN items i ON i.order_id = o.id JOIN products p ON p.id = i.product WHERE c.city = 'Rome' AND p.category = 'office';

-- stateful: an anti join below joins
SELECT c.name, o.id FROM customers c JOIN orders o ON o.customer = c.id JOIN items i ON i.order_id = o.id
  WHERE c.city = 'Oslo' AND NOT EXISTS (SELECT 1 FROM items x WHERE x.order_id = i.order_id AND x.product <> i.product);

-- stateful: equal to a scalar
SELECT c.name, o.day FROM customers c JOIN orders o ON o.customer = c.id WHERE o.day = (SELECT max(day) FROM orders);

-- stateful: outer joins among inner ones
SELECT c.name, o.id, i.product, p.price FROM customers c JOIN orders o ON o.customer = c.id LEFT JOIN items i ON i.order_id = o.id
  LEFT JOIN products p ON p.id = i.product;

-- stateful: joins of groups
SELECT c.city, s.n, t.total FROM customers c JOIN (SELECT customer, count(*) AS n FROM orders GROUP BY customer) s ON s.customer = c.id
  JOIN (SELECT o.customer, sum(i.quantity) AS total FROM orders o JOIN items i ON i.order_id = o.id GROUP BY o.customer) t ON t.customer = c.id;

-- stateful: the same groups with something on top
SELECT o.customer, sum(i.quantity) * 2 AS twice FROM orders o JOIN items i ON i.order_id = o.id GROUP BY o.customer HAVING sum(i.quantity) + 1 > 3;
