-- Strings that are compared otherwise than by their bytes: without regard to case, accents, or spaces at the end.
CREATE TABLE names (
  id INT,
  name STRING COLLATE UTF8_LCASE,
  town STRING COLLATE UNICODE_CI_AI,
  note STRING COLLATE UTF8_BINARY_RTRIM,
  plain STRING,
  word STRING COLLATE UNICODE
);

CREATE TABLE prizes (winner STRING COLLATE UTF8_LCASE, prize INT);

INSERT INTO names VALUES
  (1, 'ann', 'Köln', 'x', 'ann', 'a'), (2, 'ANN', 'koln', 'x ', 'ANN', 'B'), (3, 'Bob', 'KÖLN', 'x', 'bob', 'b'),
  (4, NULL, NULL, NULL, NULL, NULL), (5, 'bob', 'Ulm', ' ', 'Bob', 'A'), (6, '', '', '', '', '');

INSERT INTO prizes VALUES ('Ann', 10), ('BOB', 20), ('eve', 30), (NULL, 40);

-- transaction: others of the same names come
INSERT INTO names VALUES (7, 'aNN', 'ulm', 'y', 'x', 'c'), (8, 'Eve', 'ULM', 'y  ', 'eve', 'C'), (9, 'BOB', NULL, 'x', 'a', 'é');
INSERT INTO prizes VALUES ('ann', 50);

-- transaction: the first of several goes, and others by a collated condition
DELETE FROM names WHERE id IN (1, 3);
DELETE FROM prizes WHERE prize = 20;
DELETE FROM names WHERE name = 'BOB';
UPDATE names SET name = upper(name), town = 'kÖln' WHERE town = 'ULM';
