-- A small shop: decimals, dates, foreign keys that may dangle.
CREATE TABLE customers (id INT PRIMARY KEY, name STRING, city STRING, joined DATE, credit DECIMAL(12, 2));
CREATE TABLE products (id INT PRIMARY KEY, name STRING, category STRING, price DECIMAL(10, 2));
CREATE TABLE orders (id INT PRIMARY KEY, customer INT, day DATE, status STRING);
CREATE TABLE items (order_id INT, product INT, quantity INT, discount DECIMAL(4, 2));

INSERT INTO customers VALUES
  (1, 'Ann', 'Rome', DATE'2023-01-15', 100.00),
  (2, 'Bob', 'Oslo', DATE'2023-03-01', 0.00),
  (3, 'Cid', 'Rome', DATE'2024-02-29', NULL),
  (4, 'Dee', NULL, DATE'2022-12-31', 250.50),
  (5, 'Eve', 'Lima', DATE'2024-01-01', 99999999.99),
  (6, 'Fay', 'Oslo', NULL, 12.34),
  (7, 'Gus', 'Kyiv', DATE'2020-02-29', 0.01),
  (8, 'Hal', 'Lima', DATE'2021-06-30', 75.00);
INSERT INTO products VALUES
  (10, 'pen', 'office', 1.20), (11, 'desk', 'office', 249.99), (12, 'lamp', 'home', 39.50), (13, 'rug', 'home', 80.00),
  (14, 'ball', 'sport', 15.00), (15, 'net', 'sport', 15.00), (16, 'mug', 'home', 0.00), (17, 'bike', 'sport', 1200.00),
  (18, 'mystery', NULL, NULL);
INSERT INTO orders VALUES
  (100, 1, DATE'2024-01-05', 'paid'), (101, 1, DATE'2024-02-10', 'open'), (102, 2, DATE'2024-02-10', 'paid'),
  (103, 3, DATE'2024-03-01', 'paid'), (104, 5, DATE'2024-03-31', 'void'), (105, 5, DATE'2024-04-30', 'paid'),
  (106, NULL, DATE'2024-05-01', 'open'), (107, 8, NULL, 'paid'), (108, 77, DATE'2024-05-20', 'paid'),
  (109, 2, DATE'2024-12-31', NULL), (110, 7, DATE'2024-06-15', 'open');
INSERT INTO items VALUES
  (100, 10, 10, 0.00), (100, 11, 1, 0.10), (101, 12, 2, 0.00), (102, 10, 5, 0.05), (102, 13, 1, NULL), (102, 14, 3, 0.00),
  (103, 17, 1, 0.15), (104, 15, 2, 0.00), (105, 14, 2, 0.00), (105, 15, 2, 0.00), (105, 16, 4, 0.00), (106, 12, 1, 0.50),
  (107, 10, 100, 0.25), (108, 99, 1, 0.00), (109, 11, 2, 0.00), (109, 10, 10, 0.00), (200, 13, 1, 0.00), (110, NULL, 1, 0.00);

CREATE LIVE VIEW spending AS
SELECT o.customer, count(DISTINCT o.id) AS orders, sum(i.quantity * p.price) AS amount
FROM orders o JOIN items i ON i.order_id = o.id JOIN products p ON p.id = i.product GROUP BY o.customer;
CREATE LIVE VIEW big_spenders AS SELECT c.id, c.name, s.amount FROM customers c JOIN spending s ON s.customer = c.id WHERE s.amount > 100;

-- transaction: a new order with its items
INSERT INTO orders VALUES (111, 4, DATE'2024-07-04', 'open'), (112, 6, DATE'2024-07-05', 'paid');
INSERT INTO items VALUES (111, 17, 2, 0.00), (111, 10, 3, 0.00), (112, 12, 1, 0.00), (112, 12, 1, 0.00);

-- transaction: prices change, which touches old orders
UPDATE products SET price = price * 2 WHERE category = 'sport';
MERGE INTO products AS p USING (VALUES (18, 'mystery box', 'home', 5.00), (19, 'chair', 'office', 60.00)) AS s(id, name, category, price) ON p.id = s.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;

-- transaction: both sides of a join change, and a group is emptied
DELETE FROM customers WHERE city = 'Oslo';
DELETE FROM orders WHERE customer = 2;
INSERT INTO customers VALUES (9, 'Ida', 'Kyiv', DATE'2024-07-07', -5.00);
INSERT INTO orders VALUES (113, 9, DATE'2024-07-08', 'paid');

-- transaction: an update that changes nothing
UPDATE customers SET name = name;
UPDATE items SET quantity = quantity WHERE discount = 0.00;

-- transaction: the emptied group is filled again, NULLs move
INSERT INTO customers VALUES (2, 'Bob', 'Oslo', DATE'2023-03-01', 10.00), (6, 'Fay', 'Oslo', DATE'2024-08-01', 12.34);
UPDATE orders SET customer = 2 WHERE customer IS NULL;
UPDATE items SET discount = NULL WHERE product = 10;
UPDATE orders SET day = DATE'2024-08-08' WHERE day IS NULL;

-- transaction: mass delete
DELETE FROM items WHERE product IN (10, 12, 14);
DELETE FROM orders WHERE status = 'paid';

-- transaction: everything goes
DELETE FROM items;
DELETE FROM orders;
DELETE FROM customers;

-- transaction: a new start
INSERT INTO customers VALUES (1, 'Ann', 'Rome', DATE'2025-01-15', 1.00), (2, 'Bob', 'Rome', DATE'2025-02-28', 2.00);
INSERT INTO orders VALUES (1, 1, DATE'2025-03-01', 'paid'), (2, 2, DATE'2025-03-02', 'open'), (3, 1, DATE'2025-03-03', 'paid');
INSERT INTO items VALUES (1, 10, 1, 0.00), (1, 11, 1, 0.20), (2, 12, 7, 0.00), (3, 13, 1, 0.00);
