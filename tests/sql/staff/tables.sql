-- People and departments: NULL wherever it may be, arrays, structs, maps and arrays of structs.
CREATE TABLE departments (id INT PRIMARY KEY, name STRING, parent INT, budget DECIMAL(18, 2), tags ARRAY<STRING>);
CREATE TABLE employees (id INT PRIMARY KEY, name STRING, department INT, manager INT, salary INT, bonus DOUBLE, hired DATE,
  skills ARRAY<STRING>, home STRUCT<city: STRING, zip: INT>, phones MAP<STRING, STRING>, history ARRAY<STRUCT<year: INT, title: STRING>>);

INSERT INTO departments VALUES
  (1, 'board', NULL, 1000000.00, array('top')), (2, 'tech', 1, 500000.50, array('dev', 'ops')), (3, 'sales', 1, NULL, array()),
  (4, 'lab', 2, 0.00, NULL), (5, NULL, 2, 10.00, array('dev', NULL)), (6, 'ghost', 99, 1.00, array('x', 'x'));
INSERT INTO employees VALUES
  (1, 'Ada', 1, NULL, 9000, 1.5, DATE'2010-01-01', array('math', 'sql'), named_struct('city', 'Rome', 'zip', 100), map('home', '1', 'work', '2'), array(named_struct('year', 2010, 'title', 'dev'), named_struct('year', 2015, 'title', 'cto'))),
  (2, 'Ben', 2, 1, 5000, NULL, DATE'2012-05-05', array('sql', 'java', 'sql'), named_struct('city', 'Oslo', 'zip', NULL), map('home', '3'), array(named_struct('year', 2012, 'title', 'dev'))),
  (3, 'Cyd', 2, 1, 5000, 0.5, NULL, array(), named_struct('city', CAST(NULL AS STRING), 'zip', 300), map(), array()),
  (4, 'Dan', 3, 2, NULL, 2.0, DATE'2020-02-29', NULL, NULL, NULL, NULL),
  (5, NULL, NULL, 2, 3000, 0.0, DATE'2021-01-01', array(NULL, 'java'), named_struct('city', 'Rome', 'zip', 100), map('work', CAST(NULL AS STRING)), array(named_struct('year', CAST(NULL AS INT), 'title', CAST(NULL AS STRING)))),
  (6, 'Fin', 4, NULL, 3000, 0.25, DATE'2012-05-05', array('r'), named_struct('city', 'Kyiv', 'zip', 600), map('home', '6', 'fax', '66'), array(NULL)),
  (7, 'Gia', 77, 6, 0, NULL, NULL, array('sql', 'r', 'java', 'math'), named_struct('city', 'Oslo', 'zip', 200), map('home', NULL, 'work', '7'), array(named_struct('year', 2019, 'title', 'rep'), named_struct('year', 2018, 'title', 'dev'))),
  (8, 'Ada', 3, 4, 4500, 1.5, DATE'2019-09-09', array('sales'), named_struct('city', 'Rome', 'zip', NULL), map('work', '8'), array(named_struct('year', 2019, 'title', 'rep')));

-- transaction: two arrive
INSERT INTO employees VALUES
  (9, 'Ivy', 5, 3, 7000, 3.0, DATE'2024-01-01', array('rust', 'sql'), named_struct('city', 'Lima', 'zip', 900), map('home', '9'), array(named_struct('year', 2024, 'title', 'dev'))),
  (10, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);

-- transaction: reorganisation on both sides
UPDATE employees SET department = 4, manager = 6 WHERE department = 2;
UPDATE departments SET parent = 3 WHERE parent = 2;
INSERT INTO departments VALUES (77, 'lost', NULL, NULL, array('found'));

-- transaction: nested values change
UPDATE employees SET skills = array('sql'), phones = map('mobile', '0') WHERE id IN (3, 4);
UPDATE employees SET home = named_struct('city', 'Rome', 'zip', 101) WHERE id = 1;
UPDATE employees SET history = NULL WHERE id = 7;
UPDATE departments SET tags = array('ops') WHERE tags IS NULL;

-- transaction: nothing changes
UPDATE employees SET skills = skills, home = home, salary = salary;

-- transaction: NULLs come and go
UPDATE employees SET salary = NULL WHERE salary = 5000;
UPDATE employees SET salary = 1 WHERE id IN (4, 10);
UPDATE employees SET name = 'Eli' WHERE name IS NULL;

-- transaction: departments close
DELETE FROM departments WHERE id IN (2, 3, 5);
DELETE FROM employees WHERE department = 3;

-- transaction: nearly all leave
DELETE FROM employees WHERE id <> 6;
DELETE FROM departments WHERE parent IS NULL;

-- transaction: and some come back
INSERT INTO employees VALUES
  (1, 'Ada', 4, 6, 9000, 1.5, DATE'2010-01-01', array('math', 'sql'), named_struct('city', 'Rome', 'zip', 100), map('work', '2', 'home', '1'), array(named_struct('year', 2010, 'title', 'dev'))),
  (2, 'Ben', 4, 1, NULL, -0.5, NULL, array(CAST(NULL AS STRING)), named_struct('city', CAST(NULL AS STRING), 'zip', CAST(NULL AS INT)), map('home', '3'), array());
INSERT INTO departments VALUES (1, 'board', NULL, 5.00, NULL);
