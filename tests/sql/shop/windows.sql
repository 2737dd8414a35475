-- touched groups: two orders of one partition
SELECT customer, id, row_number() OVER (PARTITION BY customer ORDER BY day, id) AS first,
  row_number() OVER (PARTITION BY customer ORDER BY id DESC) AS last FROM orders;

-- touched groups: two orders of one partition, and the whole of it
SELECT customer, id, rank() OVER (PARTITION BY customer ORDER BY day) AS r, count(*) OVER (PARTITION BY customer) AS n,
  lag(id) OVER (PARTITION BY customer ORDER BY id) AS before FROM orders;

-- touched groups: the first two of each
SELECT * FROM (SELECT category, id, price, row_number() OVER (PARTITION BY category ORDER BY price DESC, id) AS place FROM products) WHERE place <= 2;

-- touched groups: the first, with those as good
SELECT category, id FROM (SELECT category, id, rank() OVER (PARTITION BY category ORDER BY price DESC) AS place FROM products) WHERE place = 1;

-- touched groups: less than the average of its kind
SELECT id FROM (SELECT id, quantity, order_id AS id2, max(quantity) OVER (PARTITION BY order_id) AS most, product FROM items i JOIN orders o ON o.id = i.order_id)
  WHERE quantity < most;

-- touched groups: partitions by different columns
SELECT id, count(*) OVER (PARTITION BY customer) AS a, count(*) OVER (PARTITION BY status) AS b FROM orders;
