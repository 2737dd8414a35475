-- stateful: scalar subquery in the select list
SELECT id, price, (SELECT max(price) FROM products) AS top FROM products;

-- stateful: scalar subquery in the filter
SELECT id FROM products WHERE price > (SELECT avg(price) FROM products);

-- stateful: correlated scalar subquery
SELECT c.id, (SELECT count(*) FROM orders o WHERE o.customer = c.id) AS n FROM customers c;

-- stateful: correlated maximum in the filter
SELECT o.id FROM orders o WHERE o.day = (SELECT max(day) FROM orders x WHERE x.customer = o.customer);

-- stateful: IN
SELECT id FROM orders WHERE customer IN (SELECT id FROM customers WHERE city = 'Rome');

-- stateful: NOT IN with NULLs on both sides
SELECT id FROM customers WHERE id NOT IN (SELECT customer FROM orders);

-- stateful: NOT IN over a set without NULLs
SELECT id, customer FROM orders WHERE customer NOT IN (SELECT id FROM customers);

-- stateful: NOT IN over two columns
SELECT id FROM orders WHERE (customer, status) NOT IN (SELECT customer, status FROM orders WHERE status = 'paid');

-- stateful: correlated NOT IN
SELECT o.id FROM orders o WHERE 10 NOT IN (SELECT product FROM items i WHERE i.order_id = o.id);

-- stateful: EXISTS
SELECT id FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND o.status = 'paid');

-- stateful: NOT EXISTS
SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id);

-- stateful: uncorrelated EXISTS
SELECT id FROM customers WHERE EXISTS (SELECT 1 FROM orders WHERE status = 'void');

-- stateful: EXISTS under OR
SELECT id FROM customers c WHERE city = 'Lima' OR EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id);

-- stateful: EXISTS in the select list
SELECT id, EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id) AS active FROM customers c;

-- stateful: IN in the select list, three-valued
SELECT id, id IN (SELECT customer FROM orders) AS active FROM customers;

-- stateful: IN inside CASE
SELECT id, CASE WHEN customer IN (SELECT id FROM customers WHERE credit > 50) THEN 'rich' ELSE 'other' END AS kind FROM orders;

-- stateful: scalar subquery in HAVING
SELECT customer, count(*) AS n FROM orders GROUP BY customer HAVING count(*) >= (SELECT avg(n) FROM (SELECT count(*) AS n FROM orders GROUP BY customer));

-- stateful: subquery inside an aggregate's argument
SELECT sum(CASE WHEN product IN (SELECT id FROM products WHERE category = 'office') THEN quantity ELSE 0 END) AS office FROM items;

-- stateful: correlated with inequality
SELECT p.id, (SELECT count(*) FROM products q WHERE q.price < p.price) AS cheaper FROM products p;

-- stateful: nested subqueries
SELECT name FROM customers WHERE id IN (SELECT customer FROM orders WHERE id IN (SELECT order_id FROM items WHERE product IN
  (SELECT id FROM products WHERE category = 'home')));

-- stateful: scalar subquery over an empty table is NULL
SELECT id, (SELECT sum(quantity) FROM items WHERE quantity < 0) AS none FROM products;

-- stateful: correlated subquery in a join condition's input
SELECT c.id, o.id AS order_id FROM customers c JOIN orders o ON o.customer = c.id
WHERE o.id > (SELECT min(id) FROM orders x WHERE x.customer = c.id);

-- stateful: a subquery in the group key
SELECT customer IN (SELECT id FROM customers) AS known, count(*) AS n FROM orders GROUP BY 1;

-- stateful: products bought by everyone in Rome
SELECT i.product FROM items i JOIN orders o ON i.order_id = o.id JOIN customers c ON o.customer = c.id AND c.city = 'Rome'
GROUP BY i.product HAVING count(DISTINCT c.id) = (SELECT count(*) FROM customers WHERE city = 'Rome');

-- stateful: two scalar subqueries in one expression
SELECT (SELECT count(*) FROM orders) * 1000 + (SELECT count(*) FROM customers) AS code, id FROM products WHERE id < 12;

-- stateful: an uncorrelated IN with an aggregate
SELECT id, name FROM customers WHERE id IN (SELECT customer FROM orders GROUP BY customer HAVING count(*) > 1);
