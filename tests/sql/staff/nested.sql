-- linear: fields of a struct
SELECT id, home.city, home.zip + 1 AS next_zip, home IS NULL AS homeless FROM employees;

-- linear: elements of arrays and maps
SELECT id, skills[0] AS first, try_element_at(skills, -1) AS last, size(skills) AS n, phones['home'] AS home, map_keys(phones) AS kinds FROM employees WHERE size(skills) > 0;

-- linear: array functions
SELECT id, array_contains(skills, 'sql') AS sql, array_distinct(skills) AS unique, sort_array(skills) AS sorted, array_join(skills, '/', '?') AS joined,
  array_position(skills, 'java') AS at, slice(skills, 1, 2) AS two, array_union(skills, array('x')) AS more, array_except(skills, array('sql')) AS less FROM employees;

-- linear: higher-order functions
SELECT id, transform(skills, s -> upper(s)) AS loud, filter(skills, s -> s LIKE '%a%') AS with_a, exists(skills, s -> s = 'sql') AS has, forall(skills, s -> length(s) > 1) AS long,
  aggregate(skills, 0, (acc, s) -> acc + length(s)) AS letters, zip_with(skills, skills, (a, b) -> concat(a, b)) AS twice FROM employees;

-- linear: map functions
SELECT id, map_contains_key(phones, 'home') AS h, map_values(phones) AS vs, map_filter(phones, (k, v) -> v > '2') AS big, transform_values(phones, (k, v) -> concat(k, v)) AS both,
  map_concat(phones, map('extra', 'e')) AS more, size(map_entries(phones)) AS n FROM employees;

-- linear: building nested values
SELECT id, named_struct('n', name, 's', salary) AS s, array(salary, id) AS a, map(id, name) AS m, struct(home.*, id) AS h, map_from_arrays(array('a', 'b'), array(id, salary)) AS ma FROM employees;

-- linear: explode
SELECT id, explode(skills) AS skill FROM employees;

-- linear: explode outer
SELECT id, explode_outer(skills) AS skill FROM employees;

-- linear: posexplode
SELECT id, posexplode(skills) AS (position, skill) FROM employees;

-- linear: explode of a map
SELECT id, explode(phones) AS (kind, number) FROM employees;

-- linear: posexplode outer of a map
SELECT id, posexplode_outer(phones) AS (position, kind, number) FROM employees;

-- linear: inline
SELECT id, inline(history) FROM employees;

-- linear: inline outer
SELECT id, inline_outer(history) AS (y, t) FROM employees;

-- linear: lateral view
SELECT e.id, s.skill FROM employees e LATERAL VIEW explode(skills) s AS skill WHERE s.skill <> 'sql';

-- linear: lateral view outer, twice
SELECT e.id, s.skill, p.kind FROM employees e LATERAL VIEW OUTER explode(skills) s AS skill LATERAL VIEW OUTER explode(phones) p AS kind, number;

-- linear: explode in the from clause
SELECT e.id, t.h.title FROM employees e, LATERAL explode(e.history) AS t(h);

-- linear: filter on nested values
SELECT id FROM employees WHERE home.city = 'Rome' AND array_contains(skills, 'sql');

-- linear: comparison of arrays and structs
SELECT id FROM employees WHERE skills > array('m') OR home = named_struct('city', 'Rome', 'zip', 100);

-- stateful: how many know each skill
SELECT skill, count(*) AS n, count(DISTINCT id) AS people FROM (SELECT id, explode(skills) AS skill FROM employees) GROUP BY skill;

-- stateful: group by an array
SELECT skills, count(*) AS n FROM employees GROUP BY skills;

-- stateful: group by a struct
SELECT home, count(*) AS n, sum(salary) AS s FROM employees GROUP BY home;

-- stateful: distinct structs and arrays
SELECT DISTINCT home, skills FROM employees;

-- stateful: group by a map
SELECT phones, count(*) AS n FROM employees GROUP BY phones;

-- stateful: join on a struct
SELECT a.id AS a, b.id AS b FROM employees a JOIN employees b ON a.home = b.home AND a.id < b.id;

-- stateful: join on an array, null-safe
SELECT a.id AS a, b.id AS b FROM employees a JOIN employees b ON a.skills <=> b.skills AND a.id < b.id;

-- stateful: join on a nested field
SELECT a.id AS a, b.id AS b, a.home.city FROM employees a JOIN employees b ON a.home.city = b.home.city AND a.id < b.id;

-- stateful: shared skills
SELECT a.id AS a, b.id AS b, a.skill FROM (SELECT id, explode(skills) AS skill FROM employees) a JOIN (SELECT id, explode(skills) AS skill FROM employees) b ON a.skill = b.skill AND a.id < b.id;

-- stateful: join by array_contains
SELECT e.id, d.id AS department FROM employees e JOIN departments d ON arrays_overlap(e.skills, d.tags) OR array_contains(d.tags, 'top');

-- stateful: tags without department
SELECT tag FROM departments LATERAL VIEW explode(tags) x AS tag EXCEPT SELECT explode(skills) FROM employees;

-- touched groups: extremes of nested values
SELECT department, max(home) AS far, min(skills) AS few FROM employees GROUP BY department;

-- stateful: nested rows carried through a join
SELECT d.name, e.skills, e.home, e.phones, e.history FROM employees e JOIN departments d ON e.department = d.id;

-- stateful: nested rows carried through an outer join
SELECT d.id, d.tags, e.history, e.phones FROM departments d LEFT JOIN employees e ON e.department = d.id;

-- stateful: arrays in a union
SELECT skills AS x FROM employees UNION SELECT tags FROM departments;

-- stateful: top by array size
SELECT id, skills FROM employees ORDER BY size(skills) DESC, id LIMIT 3;

-- stateful: order by a struct
-- gap: NOT_SUPPORTED a nested value has no order in the top-k operator
SELECT id, home FROM employees ORDER BY home DESC NULLS LAST, id LIMIT 3;

-- touched groups: skills of a department
SELECT e.department, array_sort(collect_set(s.skill)) AS skills FROM employees e LATERAL VIEW explode(skills) s AS skill GROUP BY e.department;

-- touched groups: structs collected
SELECT department, sort_array(collect_list(named_struct('id', id, 'skills', skills))) AS people FROM employees GROUP BY department;

-- touched groups: map from entries
SELECT department, map_from_entries(sort_array(collect_list(struct(id, name)))) AS names FROM employees WHERE id IS NOT NULL GROUP BY department;

-- touched groups: latest title
SELECT e.id, max_by(h.title, h.year) AS title FROM employees e LATERAL VIEW inline(history) h AS year, title WHERE h.year IS NOT NULL GROUP BY e.id;

-- touched groups: window with nested values
SELECT id, home, lag(skills) OVER (PARTITION BY department ORDER BY id) AS previous, lead(home) OVER (PARTITION BY department ORDER BY id) AS next FROM employees;

-- linear: flatten and sequences
SELECT id, flatten(array(skills, array('end'))) AS f, sequence(1, id) AS s, array_repeat(name, 2) AS r, reverse(skills) AS back, shuffle_free FROM (SELECT *, arrays_zip(skills, array(1, 2)) AS shuffle_free FROM employees);

-- linear: json out and in
SELECT id, to_json(home) AS j, to_json(skills) AS a, from_json('{"city":"X","zip":5}', 'city STRING, zip INT') AS parsed, get_json_object(to_json(home), '$.city') AS c FROM employees;

-- linear: deep nesting
SELECT id, named_struct('a', array(named_struct('b', map('c', array(id, salary))))) AS deep FROM employees;
