-- Bags without any key: the same row many times.
CREATE TABLE t (a INT, b STRING, c INT);
CREATE TABLE u (a INT, b STRING);
CREATE TABLE empty (a INT, b STRING);

INSERT INTO t VALUES (1, 'x', 1), (1, 'x', 1), (1, 'x', 1), (2, 'y', 2), (2, 'y', 2), (NULL, 'x', 1), (NULL, 'x', 1), (NULL, NULL, NULL), (NULL, NULL, NULL), (3, NULL, 0), (4, 'z', -1), (4, 'z', 5);
INSERT INTO u VALUES (1, 'x'), (1, 'x'), (2, 'y'), (2, 'n'), (NULL, 'x'), (NULL, NULL), (5, 'w'), (5, 'w');

-- transaction: one more copy of everything in u
INSERT INTO u SELECT * FROM u;

-- transaction: copies of t that are already there, and one that goes
INSERT INTO t VALUES (1, 'x', 1), (NULL, NULL, NULL), (6, 'new', 6), (6, 'new', 6);
DELETE FROM t WHERE a = 2;

-- transaction: updates that collapse rows into each other
UPDATE t SET b = 'x', c = 1 WHERE a IN (3, 4);
UPDATE u SET a = 1, b = 'x' WHERE a = 5;

-- transaction: NULLs go, the empty table gets rows
DELETE FROM t WHERE a IS NULL;
DELETE FROM u WHERE a IS NULL;
INSERT INTO empty VALUES (1, 'x'), (1, 'x'), (NULL, 'e');

-- transaction: a change that takes itself back
INSERT INTO t VALUES (9, 'nine', 9);
DELETE FROM t WHERE a = 9;
UPDATE t SET c = c * 1;

-- transaction: empty again, and the others swap
DELETE FROM empty;
DELETE FROM t;
INSERT INTO t SELECT a, b, 7 FROM u;
DELETE FROM u WHERE b <> 'y';

-- transaction: NULLs come back
INSERT INTO t VALUES (NULL, 'x', 1), (NULL, NULL, NULL), (2, 'y', NULL);
INSERT INTO u VALUES (NULL, NULL), (2, NULL);
