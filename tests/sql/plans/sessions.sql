-- touched groups: sessions of a person
SELECT person, session_window(at, '5 minutes') AS w, count(*) AS n, sum(page) AS pages FROM visits
GROUP BY person, session_window(at, '5 minutes');

-- touched groups: sessions of everybody, each row with its own gap
SELECT session_window(at, gap) AS w, count(*) AS n FROM visits GROUP BY session_window(at, gap);

-- touched groups: the gap depends on the person, one distinct aggregate
SELECT person, session_window.start, count(DISTINCT page) AS n FROM visits
GROUP BY person, session_window(at, CASE WHEN person = 1 THEN '10 minutes' ELSE '1 minute' END);

-- touched groups: several distinct aggregates, which Spark expands
SELECT person, session_window(at, '5 minutes') AS w, count(DISTINCT page) AS pages, count(DISTINCT gap) AS gaps FROM visits
GROUP BY person, session_window(at, '5 minutes');

-- touched groups: distinct sessions are merged, too
SELECT DISTINCT session_window(at, '5 minutes') AS w FROM visits;

-- touched groups: sessions of persons, merged once more
SELECT w, count(*) AS n FROM
  (SELECT person, session_window(at, '5 minutes') AS w FROM visits GROUP BY person, session_window(at, '5 minutes')) GROUP BY w;

-- touched groups: a window over sessions
SELECT person, w, rank() OVER (PARTITION BY person ORDER BY w.start) AS r FROM
  (SELECT person, session_window(at, '5 minutes') AS w FROM visits GROUP BY person, session_window(at, '5 minutes'));

-- touched groups: the time of a session, of those with more than one visit
SELECT window_time(session_window) AS t, n FROM
  (SELECT session_window, count(*) AS n FROM visits GROUP BY session_window(at, '5 minutes') HAVING count(*) > 1);

-- recomputed: a function over the session that it groups by
SELECT session_window(at, '5 minutes') AS w, max(session_window(at, '5 minutes').end) AS m FROM visits
GROUP BY session_window(at, '5 minutes');

-- linear: windows of single rows are not merged
SELECT person, session_window(at, '5 minutes') AS w FROM visits;

-- stateful: the session of a constant time is a constant
SELECT session_window.start AS s, session_window.end AS e, count(*) AS n, sum(page) AS pages
FROM (SELECT TIMESTAMP'2024-01-01 00:01:00' AS at, page FROM visits) GROUP BY session_window(at, '5 minutes');

-- stateful: the window of a constant time is a constant
SELECT window.start AS s, person, count(*) AS n FROM (SELECT TIMESTAMP'2024-01-01 00:01:00' AS at, person FROM visits) GROUP BY window(at, '5 minutes'), person;
