-- Every scalar type at its edges: widths of integers, wide decimals, booleans, dates far away, odd identifiers.
CREATE TABLE numbers (k STRING, tiny TINYINT, small SMALLINT, whole INT, big BIGINT, exact DECIMAL(38, 10), money DECIMAL(7, 2), single FLOAT, flag BOOLEAN);
CREATE TABLE moments (k STRING, d DATE, ts TIMESTAMP, local TIMESTAMP_NTZ, span INTERVAL DAY TO SECOND);
CREATE TABLE `odd names` (`select` INT, `größe` STRING, `a b` INT, `MiXeD` STRING);

INSERT INTO numbers VALUES
  ('max', 127, 32767, 2147483647, 9223372036854775807, 9999999999999999999999999999.9999999999, 99999.99, FLOAT(3.5), true),
  ('min', -128, -32768, -2147483648, -9223372036854775807, -9999999999999999999999999999.9999999999, -99999.99, FLOAT(-3.5), false),
  ('zero', 0, 0, 0, 0, 0, 0, FLOAT(0), NULL), ('one', 1, 1, 1, 1, 1.0000000001, 0.01, FLOAT(1), true), ('null', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  ('half', 2, 2, 2, 2, 0.5, 0.05, FLOAT(0.5), false), ('third', 3, 3, 3, 3, 0.3333333333, 0.33, FLOAT(0.3333333), true), (NULL, 5, 5, 5, 5, 5, 5, FLOAT(5), true);
INSERT INTO moments VALUES
  ('epoch', DATE'1970-01-01', TIMESTAMP'1970-01-01 00:00:00', TIMESTAMP_NTZ'1970-01-01 00:00:00', INTERVAL '0' DAY),
  ('leap', DATE'2024-02-29', TIMESTAMP'2024-02-29 23:59:59.999999', TIMESTAMP_NTZ'2024-02-29 23:59:59.999999', INTERVAL '1 02:03:04.5' DAY TO SECOND),
  ('old', DATE'1582-10-15', TIMESTAMP'1900-01-01 00:00:00', TIMESTAMP_NTZ'1900-01-01 00:00:00', INTERVAL '-1' DAY),
  ('far', DATE'9999-12-31', TIMESTAMP'9999-12-31 23:59:59', TIMESTAMP_NTZ'9999-12-31 23:59:59', INTERVAL '1000' DAY),
  ('first', DATE'0001-01-01', TIMESTAMP'0001-01-01 00:00:00', TIMESTAMP_NTZ'0001-01-01 00:00:00', NULL), ('null', NULL, NULL, NULL, NULL);
INSERT INTO `odd names` VALUES (1, 'groß', 10, 'x'), (2, 'klein', 20, 'X'), (2, NULL, NULL, 'x');

-- transaction: more of the same
INSERT INTO numbers VALUES ('two', 2, 2, 2, 2, 2.5, 2.50, FLOAT(2), false), ('one', 1, 1, 1, 1, 1.0000000001, 0.01, FLOAT(1), true);
INSERT INTO moments VALUES ('dst', DATE'2024-03-31', TIMESTAMP'2024-03-31 01:30:00', TIMESTAMP_NTZ'2024-03-31 02:30:00', INTERVAL '90' MINUTE);
INSERT INTO `odd names` VALUES (3, 'größer', 30, 'y');

-- transaction: signs turn
UPDATE numbers SET money = -money, flag = NOT flag WHERE k <> 'null';
UPDATE moments SET span = -span;
UPDATE `odd names` SET `größe` = upper(`größe`), `a b` = `a b` + 1;

-- transaction: the extremes go
DELETE FROM numbers WHERE k IN ('max', 'min');
DELETE FROM moments WHERE k = 'far' OR k = 'first';

-- transaction: nothing
UPDATE numbers SET exact = exact, tiny = tiny;
DELETE FROM `odd names` WHERE `select` = 99;

-- transaction: keys turn to NULL
UPDATE numbers SET k = NULL WHERE whole < 3;
UPDATE moments SET d = NULL WHERE d < DATE'2000-01-01';

-- transaction: emptied and filled
DELETE FROM moments;
DELETE FROM `odd names`;
INSERT INTO moments VALUES ('new', DATE'2025-06-01', TIMESTAMP'2025-06-01 12:00:00', TIMESTAMP_NTZ'2025-06-01 12:00:00', INTERVAL '1' SECOND);
INSERT INTO numbers VALUES ('max', 127, 32767, 2147483647, 9223372036854775807, 9999999999999999999999999999.9999999999, 99999.99, FLOAT(3.5), true);
