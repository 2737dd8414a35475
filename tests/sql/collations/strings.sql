-- linear: a filter finds every case
SELECT * FROM names WHERE name = 'aNN' OR town = 'KOLN' OR note = 'y' OR array_contains(array(name), 'EVE');

-- linear: comparisons of what functions give, none of which states a collation
SELECT id, upper(name) = lower(name) AS same, concat(name, 'X') = concat(name, 'x') AS also, name < 'ANNA' AS before FROM names;

-- linear: a list, a pattern, a case
SELECT id, name IN ('ANN', 'EVE') AS listed, name LIKE 'A%' AS pattern, CASE name WHEN 'bob' THEN 1 ELSE 2 END AS chosen FROM names;

-- linear: a collation that only the query names
SELECT id FROM names WHERE plain = 'ANN' COLLATE UTF8_LCASE;

-- linear: functions of strings
SELECT id, contains(name, 'N') AS has, replace(name, 'N', '_') AS changed, startswith(name, 'B') AS starts, instr(name, 'N') AS place FROM names;

-- stateful: an inner join
SELECT id, prize FROM names JOIN prizes ON name = winner;

-- stateful: an outer join
SELECT id, prize FROM names FULL JOIN prizes ON name = winner AND prize > id;

-- stateful: NOT IN a subquery
SELECT id FROM names WHERE name NOT IN (SELECT winner FROM prizes WHERE winner IS NOT NULL);

-- stateful: IN a subquery, or EXISTS with more than an equality
SELECT id FROM names WHERE name IN (SELECT winner FROM prizes WHERE prize > 40) OR EXISTS (SELECT 1 FROM prizes WHERE winner = name AND prize > id * 5);

-- stateful: groups of every case
SELECT lower(name) AS name, count(*) AS n, sum(id) AS total FROM names GROUP BY name;

-- stateful: groups without regard to spaces at the end
SELECT rtrim(note) AS note, count(*) AS n FROM names GROUP BY note HAVING count(*) > 1;

-- stateful: distinct
SELECT upper(name) AS name FROM (SELECT DISTINCT name FROM names);

-- recomputed: distinct by several collated columns, whose values must come from one row
SELECT upper(name) AS name, count(*) OVER () AS n FROM (SELECT DISTINCT name, note FROM names);

-- touched groups: counts of distinct strings
SELECT count(DISTINCT name) AS names FROM names;

-- touched groups: least and greatest
SELECT lower(min(name)) AS least, lower(max(name)) AS greatest, lower(max(word)) AS last FROM names;

-- touched groups: in groups by a collated column
SELECT lower(town) = 'ulm' AS ulm, lower(max(name)) AS greatest, sort_array(collect_list(id)) AS ids FROM names GROUP BY town;

-- stateful: INTERSECT
SELECT lower(name) AS name FROM names INTERSECT SELECT lower(winner) FROM prizes;

-- stateful: UNION and EXCEPT
SELECT upper(name) AS name FROM (SELECT name FROM names EXCEPT SELECT winner FROM prizes WHERE prize < 15 UNION SELECT winner FROM prizes);

-- linear: ORDER BY a column that is not shown
SELECT id FROM names ORDER BY word DESC NULLS LAST, id;

-- stateful: the first in the order
SELECT id FROM names ORDER BY town, id LIMIT 3;

-- recomputed: windows
SELECT id, row_number() OVER (PARTITION BY name ORDER BY id) AS place FROM names;

-- touched groups: a collation that the query gives, of the least and the greatest
SELECT lower(min(plain COLLATE UNICODE_CI)) AS least, lower(max(plain COLLATE UNICODE_CI)) AS greatest FROM names;

-- touched groups: a collation that the query gives, of distinct strings
SELECT count(DISTINCT plain COLLATE UTF8_LCASE) AS names FROM names;

-- touched groups: a collation that the query gives, of what others are chosen by
SELECT lower(max_by(plain, plain COLLATE UNICODE_CI)) AS last FROM names;

-- linear: a collation that the query gives, of what is ordered by
SELECT id FROM names ORDER BY plain COLLATE UNICODE_CI DESC, id;

-- touched groups: structs with a collated field
SELECT max(struct(word COLLATE UNICODE_CI AS w, id)).id AS last, max(struct(town, id)).id AS town FROM names;

-- recomputed: groups by structs with a collated field
SELECT count(*) AS n FROM names GROUP BY struct(name);
