-- What Spark leaves to its physical plan, or hides in it: sessions, orders of subqueries, names of rows, filters that come first.
CREATE TABLE visits (person INT, at TIMESTAMP, gap STRING, page INT);
CREATE TABLE asks (a INT, b INT, c STRING);
CREATE TABLE bids (a INT, b INT, c STRING);

INSERT INTO visits VALUES
  (1, TIMESTAMP'2024-01-01 00:00:00', '5 minutes', 1), (1, TIMESTAMP'2024-01-01 00:03:00', '1 minute', 2),
  (2, TIMESTAMP'2024-01-01 00:20:00', '5 minutes', 3), (1, NULL, '5 minutes', 9), (NULL, TIMESTAMP'2024-01-01 00:19:00', NULL, 4);
INSERT INTO asks VALUES (1, 10, 'x'), (2, 20, 'y'), (3, NULL, NULL), (1, 5, 'x');
INSERT INTO bids VALUES (1, 100, 'p'), (1, 50, 'q'), (2, 7, 's'), (2, 9, 'r'), (5, 5, 't'), (NULL, 1, 'u');

-- transaction: sessions meet, and a divisor is zero
INSERT INTO visits VALUES
  (1, TIMESTAMP'2024-01-01 00:08:00', '5 minutes', 5), (1, TIMESTAMP'2024-01-01 00:04:00', '4 minutes', 6), (2, TIMESTAMP'2024-01-01 00:26:00', '0 minutes', 7);
INSERT INTO asks VALUES (0, 1, 'z'), (4, 4, 'x');
INSERT INTO bids VALUES (1, 200, 'o'), (2, 1, 'z'), (1, 45, 'r'), (0, 3, 'v');

-- transaction: what held a session together goes
DELETE FROM visits WHERE page IN (2, 6);
DELETE FROM asks WHERE b = 5;
DELETE FROM bids WHERE c = 'z';

-- transaction: rows move
UPDATE visits SET at = TIMESTAMP'2024-01-01 00:10:00' WHERE page = 1;
UPDATE bids SET b = b + 60 WHERE c = 'r';
UPDATE asks SET a = a + 1;

-- transaction: all goes
DELETE FROM visits;
DELETE FROM bids;
