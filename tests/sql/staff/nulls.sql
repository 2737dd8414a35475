-- linear: three-valued logic
SELECT id, salary > 4000 AND bonus > 1 AS both, salary > 4000 OR bonus > 1 AS any, NOT (salary > 4000) AS low, salary > 4000 IS NOT TRUE AS not_true,
  (salary > 4000) IS UNKNOWN AS unknown FROM employees;

-- linear: NULL in arithmetic and text
SELECT id, salary + bonus AS pay, salary || name AS label, concat_ws('-', name, home.city, CAST(salary AS STRING)) AS joined FROM employees;

-- linear: coalesce through types
SELECT id, coalesce(bonus, salary, 0) AS value, nullif(name, 'Ada') AS other, if(manager IS NULL, 'boss', 'staff') AS role, decode(department, 1, 'one', NULL, 'none', 'else') AS d FROM employees;

-- linear: is distinct from
SELECT id FROM employees WHERE NOT (department <=> manager);

-- stateful: aggregates skip NULL
SELECT department, count(*) AS n, count(salary) AS paid, sum(salary) AS total, avg(salary) AS mean, min(bonus) AS low, max(bonus) AS high FROM employees GROUP BY department;

-- stateful: all-NULL groups
SELECT name, sum(salary) AS s, max(hired) AS h, count(bonus) AS n, bool_or(salary > 0) AS b FROM employees GROUP BY name;

-- stateful: left join on a nullable key
SELECT e.id, d.name FROM employees e LEFT JOIN departments d ON e.department = d.id;

-- stateful: full join on a nullable key
SELECT e.id, d.id AS department, d.budget FROM employees e FULL JOIN departments d ON e.department = d.id;

-- stateful: null-safe full join
SELECT e.id, d.id AS department FROM employees e FULL JOIN departments d ON e.manager <=> d.parent;

-- stateful: managers
SELECT e.name, m.name AS boss, b.name AS boss_of_boss FROM employees e LEFT JOIN employees m ON e.manager = m.id LEFT JOIN employees b ON m.manager = b.id;

-- stateful: earns more than the boss
SELECT e.id FROM employees e JOIN employees m ON e.manager = m.id WHERE e.salary > m.salary;

-- stateful: NOT IN over a nullable column
SELECT id FROM departments WHERE id NOT IN (SELECT department FROM employees);

-- stateful: NOT IN over a nullable column on the left
SELECT id FROM employees WHERE manager NOT IN (SELECT id FROM departments);

-- stateful: IN as a value
SELECT id, department IN (SELECT id FROM departments WHERE parent = 1) AS under_board FROM employees;

-- stateful: above the average of the department
SELECT e.id FROM employees e WHERE e.salary > (SELECT avg(salary) FROM employees x WHERE x.department = e.department);

-- stateful: departments and their headcount, zero included
SELECT d.id, (SELECT count(*) FROM employees e WHERE e.department = d.id) AS n, EXISTS (SELECT 1 FROM employees e WHERE e.department = d.id AND e.salary IS NULL) AS unpaid FROM departments d;

-- stateful: intersect of nullable columns
SELECT department AS x FROM employees INTERSECT SELECT manager FROM employees;

-- stateful: except of nullable columns
SELECT department AS x FROM employees EXCEPT ALL SELECT manager FROM employees;

-- stateful: grouping sets over NULL keys
SELECT department, name, count(*) AS n, grouping(department) AS gd, grouping(name) AS gn FROM employees GROUP BY GROUPING SETS ((department, name), (department), ());

-- stateful: ordering with NULLs first
SELECT id, salary FROM employees ORDER BY salary ASC NULLS FIRST, id LIMIT 4;

-- stateful: ordering with NULLs last
SELECT id, bonus FROM employees ORDER BY bonus DESC NULLS LAST, id LIMIT 4;

-- stateful: count distinct ignores NULL
SELECT count(DISTINCT department) AS d, count(DISTINCT manager, department) AS md, count(DISTINCT salary) FILTER (WHERE bonus > 0) AS s FROM employees;

-- touched groups: pivot over a nullable column
SELECT * FROM (SELECT department, coalesce(name, '?') AS name, salary FROM employees) PIVOT (sum(salary) AS total, count(*) AS n FOR name IN ('Ada', '?'));

-- linear: unpivot
SELECT * FROM (SELECT id, CAST(salary AS DOUBLE) AS salary, bonus FROM employees) UNPIVOT (amount FOR kind IN (salary, bonus));

-- touched groups: NULLs in windows
SELECT id, department, sum(salary) OVER (PARTITION BY department) AS total, lag(salary) IGNORE NULLS OVER (ORDER BY id) AS known,
  first_value(bonus) IGNORE NULLS OVER (PARTITION BY department ORDER BY id) AS first_bonus FROM employees;

-- touched groups: collected values skip NULL
SELECT department, sort_array(collect_list(salary)) AS salaries, sort_array(collect_set(name)) AS names, max_by(name, salary) AS best FROM employees WHERE id <> 3 GROUP BY department;

-- touched groups: median and percentile with NULL
SELECT department, median(salary) AS m, percentile(bonus, 0.5) AS p, mode(salary, true) AS mode FROM employees GROUP BY department;

-- linear: hiring dates
SELECT id, months_between(DATE'2024-01-01', hired) AS months, next_day(hired, 'Mon') AS monday, weekday(hired) AS wd, hired + INTERVAL '1' MONTH AS probation,
  date_from_unix_date(unix_date(hired)) AS same FROM employees;

-- touched groups: structs that are NULL where the rows of another aggregate are
SELECT department, min_by(id, struct(id, 0)) AS first, count(DISTINCT manager) FILTER (WHERE salary > 0) AS managers FROM employees GROUP BY department;

-- linear: structs that are NULL, of fields that never are
SELECT id, if(salary > 4000, named_struct('x', 1, 'y', soundex('a')), NULL) AS s, array(if(bonus > 1, struct(1 AS one), NULL)) AS a FROM employees;

-- stateful: structs of a side without a match
SELECT e.id, d.s FROM employees e LEFT JOIN (SELECT id, named_struct('x', 1, 'y', 'a') AS s FROM departments) d ON e.department = d.id;
