-- stateful: inner join
SELECT o.id, c.name, o.day FROM orders o JOIN customers c ON o.customer = c.id;

-- stateful: left join keeps orders of nobody
SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.id;

-- stateful: right join keeps customers without orders
SELECT c.id, c.name, o.id AS order_id FROM orders o RIGHT JOIN customers c ON o.customer = c.id;

-- stateful: full join keeps both
SELECT c.id AS customer, o.id AS order_id, o.status FROM orders o FULL JOIN customers c ON o.customer = c.id;

-- stateful: cross join
SELECT c.name, p.category FROM customers c CROSS JOIN (SELECT DISTINCT category FROM products) p;

-- stateful: left semi join
SELECT c.* FROM customers c LEFT SEMI JOIN orders o ON o.customer = c.id AND o.status = 'paid';

-- stateful: left anti join
SELECT c.id, c.name FROM customers c LEFT ANTI JOIN orders o ON o.customer = c.id;

-- stateful: null-safe join
SELECT a.id AS a, b.id AS b FROM customers a JOIN customers b ON a.city <=> b.city AND a.id < b.id;

-- stateful: four tables
SELECT c.name, o.day, p.name AS product, i.quantity * p.price AS amount
FROM customers c JOIN orders o ON o.customer = c.id JOIN items i ON i.order_id = o.id JOIN products p ON p.id = i.product;

-- stateful: four tables, outer all the way
SELECT c.name, o.id, p.name AS product, i.quantity
FROM customers c LEFT JOIN orders o ON o.customer = c.id LEFT JOIN items i ON i.order_id = o.id LEFT JOIN products p ON p.id = i.product;

-- stateful: join with a condition beside the key
SELECT o.id, i.product FROM orders o JOIN items i ON o.id = i.order_id AND i.quantity > 1 AND o.status <> 'void';

-- stateful: left join with a condition on the left side only
SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.id AND o.status = 'paid';

-- stateful: full join with a condition beside the key
SELECT o.id, i.product, i.quantity FROM orders o FULL JOIN items i ON o.id = i.order_id AND i.quantity > 1 AND o.status <> 'void';

-- stateful: range join
SELECT a.id AS a, b.id AS b FROM orders a JOIN orders b ON a.day < b.day AND b.day <= date_add(a.day, 40);

-- stateful: range left join
SELECT p.id, q.id AS dearer FROM products p LEFT JOIN products q ON q.price > p.price AND q.category = p.category;

-- stateful: non-equi full join
SELECT c.id, p.id AS product FROM customers c FULL JOIN products p ON c.credit > p.price * 50;

-- stateful: non-equi anti join
SELECT p.id FROM products p WHERE NOT EXISTS (SELECT 1 FROM products q WHERE q.price > p.price);

-- stateful: join using
SELECT id, c.name AS customer, p.name AS product FROM customers c JOIN products p USING (id);

-- stateful: natural join on renamed columns
SELECT * FROM (SELECT id AS customer, name FROM customers) NATURAL JOIN (SELECT customer, status FROM orders);

-- stateful: self join, many to many
SELECT a.order_id AS a, b.order_id AS b, product FROM items a JOIN items b USING (product) WHERE a.order_id < b.order_id;

-- stateful: join on an expression
SELECT o.id, p.name FROM orders o JOIN products p ON o.id % 10 = p.id - 10;

-- stateful: join on two keys
SELECT a.id AS a, b.id AS b FROM orders a JOIN orders b ON a.customer = b.customer AND a.status = b.status AND a.id <> b.id;

-- stateful: join with decimal keys of different scale
SELECT a.id AS a, b.id AS b FROM products a JOIN (SELECT id, CAST(price AS DECIMAL(14, 4)) AS price FROM products) b ON a.price = b.price;

-- stateful: join with a date key
SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.day = b.day;

-- stateful: lateral join with a limit-free subquery
SELECT c.id, t.n FROM customers c, LATERAL (SELECT count(*) AS n FROM orders o WHERE o.customer = c.id) t;

-- stateful: lateral left join
SELECT c.id, t.last_day FROM customers c LEFT JOIN LATERAL (SELECT max(day) AS last_day FROM orders o WHERE o.customer = c.id AND o.status = 'paid') t;

-- linear: lateral over columns of the row
SELECT id, t.twice FROM products, LATERAL (SELECT price * 2 AS twice) t;

-- stateful: join with values
SELECT p.name, v.label FROM products p JOIN VALUES ('home', 'H'), ('sport', 'S'), (NULL, '-') AS v(category, label) ON p.category <=> v.category;

-- stateful: outer join under a filter that makes it inner
SELECT o.id, c.city FROM orders o LEFT JOIN customers c ON o.customer = c.id WHERE c.city = 'Rome';

-- stateful: anti join by outer join
SELECT c.id FROM customers c LEFT JOIN orders o ON o.customer = c.id WHERE o.id IS NULL;

-- stateful: cross join of two aggregates
SELECT a.n, b.m FROM (SELECT count(*) AS n FROM orders) a CROSS JOIN (SELECT count(*) AS m FROM items) b;

-- stateful: coalesced keys of a full join
SELECT id, o.status, i.quantity FROM (SELECT id, status FROM orders) o FULL JOIN (SELECT order_id AS id, quantity FROM items) i USING (id);
