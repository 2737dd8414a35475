-- A directed multigraph: self joins, many to many, paths of fixed length.
CREATE TABLE nodes (id BIGINT, label STRING, color STRING, PRIMARY KEY (id));
CREATE TABLE edges (source BIGINT, target BIGINT, weight INT);

INSERT INTO nodes VALUES (1, 'a', 'red'), (2, 'b', 'green'), (3, 'c', 'red'), (4, 'd', 'blue'), (5, 'e', NULL), (6, 'f', 'green'), (7, 'g', 'blue'), (8, NULL, 'red');
INSERT INTO edges VALUES (1, 2, 5), (2, 3, 1), (3, 1, 2), (3, 4, 7), (4, 5, 1), (5, 3, 4), (5, 6, 2), (6, 6, 1), (1, 2, 5), (1, 2, 9), (7, 1, NULL), (2, 9, 3), (NULL, 4, 1), (4, NULL, 2);

-- transaction: a new cycle
INSERT INTO edges VALUES (6, 7, 3), (7, 6, 3), (2, 1, 8);

-- transaction: cut and reverse
DELETE FROM edges WHERE source = 3;
INSERT INTO edges VALUES (1, 3, 2), (4, 3, 7);
UPDATE nodes SET color = 'red' WHERE id = 5;

-- transaction: reverse everything
UPDATE edges SET source = target, target = source;

-- transaction: duplicate edges
INSERT INTO edges SELECT * FROM edges WHERE weight > 4;

-- transaction: nothing really
UPDATE edges SET weight = weight + 0;
DELETE FROM nodes WHERE id > 100;

-- transaction: nodes leave, edges stay
DELETE FROM nodes WHERE color = 'red';

-- transaction: most edges go
DELETE FROM edges WHERE weight < 5 OR weight IS NULL;
INSERT INTO nodes VALUES (1, 'a', 'pink'), (3, 'c2', 'pink');
