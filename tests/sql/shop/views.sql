-- stateful: filter on a view
SELECT customer, amount FROM spending WHERE amount > 50;

-- stateful: aggregate of a view
SELECT sum(amount) AS total, max(orders) AS most, count(*) AS customers FROM spending;

-- stateful: a view joined with the tables below it
SELECT c.name, s.amount, o.id FROM spending s JOIN customers c ON c.id = s.customer LEFT JOIN orders o ON o.customer = c.id;

-- stateful: a view on a view beside its own source
SELECT customer, amount FROM spending WHERE customer NOT IN (SELECT id FROM big_spenders);

-- stateful: two views that share their source
SELECT b.name, s.orders FROM big_spenders b FULL JOIN spending s ON s.customer = b.id;

-- touched groups: ranks over a view
SELECT id, amount, rank() OVER (ORDER BY amount DESC) AS r FROM big_spenders;

-- stateful: the top of a view
SELECT id, amount FROM big_spenders ORDER BY amount DESC, id LIMIT 1;
