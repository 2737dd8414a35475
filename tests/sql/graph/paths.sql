-- stateful: paths of length two
SELECT a.source, a.target AS via, b.target FROM edges a JOIN edges b ON a.target = b.source;

-- stateful: paths of length three, distinct
SELECT DISTINCT a.source, c.target FROM edges a JOIN edges b ON a.target = b.source JOIN edges c ON b.target = c.source;

-- stateful: triangles
SELECT a.source AS x, b.source AS y, c.source AS z FROM edges a JOIN edges b ON a.target = b.source JOIN edges c ON b.target = c.source AND c.target = a.source;

-- stateful: mutual edges
SELECT DISTINCT a.source, a.target FROM edges a JOIN edges b ON a.source = b.target AND a.target = b.source;

-- stateful: degrees by full join
SELECT id, o.n AS outgoing, i.n AS incoming FROM (SELECT source AS id, count(*) AS n FROM edges GROUP BY source) o
FULL JOIN (SELECT target AS id, count(*) AS n FROM edges GROUP BY target) i USING (id);

-- stateful: sinks
SELECT id FROM nodes WHERE id NOT IN (SELECT source FROM edges WHERE source IS NOT NULL);

-- stateful: NOT IN with a NULL among the edges is empty
SELECT id FROM nodes WHERE id NOT IN (SELECT source FROM edges);

-- stateful: isolated nodes
SELECT n.id FROM nodes n WHERE NOT EXISTS (SELECT 1 FROM edges e WHERE e.source = n.id OR e.target = n.id);

-- stateful: edges without a node
SELECT e.source, e.target FROM edges e LEFT ANTI JOIN nodes n ON n.id = e.target;

-- stateful: neighbours of a colour
SELECT n.id, count(DISTINCT m.id) AS reds FROM nodes n JOIN edges e ON e.source = n.id JOIN nodes m ON m.id = e.target AND m.color = 'red' GROUP BY n.id;

-- stateful: the undirected graph
SELECT source AS x, target AS y FROM edges WHERE source < target UNION SELECT target, source FROM edges WHERE target <= source;

-- stateful: union keeps one of each
SELECT source AS v FROM edges UNION SELECT target FROM edges;

-- stateful: intersect
SELECT source AS v FROM edges INTERSECT SELECT target FROM edges;

-- stateful: intersect all
SELECT source AS v FROM edges INTERSECT ALL SELECT target FROM edges;

-- stateful: except
SELECT source AS v FROM edges EXCEPT SELECT target FROM edges;

-- stateful: except all
SELECT source AS v FROM edges EXCEPT ALL SELECT target FROM edges;

-- stateful: minus of a minus
SELECT id FROM nodes EXCEPT (SELECT source FROM edges EXCEPT SELECT target FROM edges);

-- stateful: heaviest edge of each source by a join
SELECT e.source, e.target, e.weight FROM edges e JOIN (SELECT source, max(weight) AS w FROM edges GROUP BY source) m ON m.source = e.source AND m.w = e.weight;

-- touched groups: heaviest edge of each source by rank
SELECT source, target, weight FROM (SELECT *, rank() OVER (PARTITION BY source ORDER BY weight DESC NULLS LAST) AS r FROM edges) WHERE r = 1;

-- stateful: same colour at both ends
SELECT e.source, e.target, a.color FROM edges e JOIN nodes a ON a.id = e.source JOIN nodes b ON b.id = e.target WHERE a.color <=> b.color;

-- touched groups: weight matrix
SELECT * FROM (SELECT source, target, weight FROM edges) PIVOT (sum(weight) FOR target IN (1, 2, 3, 4));

-- stateful: cross join with condition on both
SELECT a.id AS a, b.id AS b FROM nodes a, nodes b WHERE a.id < b.id AND a.color = b.color;

-- stateful: pairs that are not linked
SELECT a.id AS a, b.id AS b FROM nodes a CROSS JOIN nodes b WHERE a.id < b.id AND NOT EXISTS (SELECT 1 FROM edges e WHERE e.source = a.id AND e.target = b.id);

-- stateful: average weight of neighbours' edges
SELECT a.source, avg(b.weight) AS mean FROM edges a JOIN edges b ON a.target = b.source GROUP BY a.source;

-- stateful: cheapest two-step path
SELECT a.source, b.target, min(a.weight + b.weight) AS cost FROM edges a JOIN edges b ON a.target = b.source GROUP BY a.source, b.target;

-- stateful: multi-edges
SELECT source, target, count(*) AS n FROM edges GROUP BY source, target HAVING count(*) > 1;

-- touched groups: adjacency lists
SELECT source, sort_array(collect_set(target)) AS targets, sort_array(collect_list(weight)) AS weights FROM edges GROUP BY source;

-- stateful: a CTE used twice
WITH degree AS (SELECT source AS id, count(*) AS n FROM edges GROUP BY source)
SELECT a.id AS a, b.id AS b FROM degree a JOIN degree b ON a.n = b.n AND a.id < b.id;

-- stateful: a chain of CTEs
WITH one AS (SELECT DISTINCT source, target FROM edges), two AS (SELECT one.source, e.target FROM one JOIN edges e ON one.target = e.source)
SELECT source, count(*) AS n FROM (SELECT * FROM one UNION SELECT * FROM two) GROUP BY source;

-- stateful: left join chains that find nothing
SELECT n.id, a.target AS one, b.target AS two FROM nodes n LEFT JOIN edges a ON a.source = n.id LEFT JOIN edges b ON b.source = a.target AND b.weight > 3;

-- stateful: full join on a null-safe key
SELECT a.source, b.id FROM edges a FULL JOIN nodes b ON a.source <=> b.id AND b.color = 'red';

-- stateful: semi join with a residual condition
SELECT a.source, a.target, a.weight FROM edges a LEFT SEMI JOIN edges b ON a.target = b.source AND a.weight < b.weight;

-- stateful: anti join with a residual condition
SELECT a.source, a.target, a.weight FROM edges a LEFT ANTI JOIN edges b ON a.target = b.source AND a.weight < b.weight;

-- stateful: three lightest edges
SELECT source, target, weight FROM edges WHERE weight IS NOT NULL ORDER BY weight, source, target LIMIT 3;

-- touched groups: bitwise aggregates
SELECT source, bit_or(weight) AS o, bit_and(weight) AS a, bit_xor(weight) AS x FROM edges GROUP BY source;

-- touched groups: extremes of structs
SELECT source, max(struct(weight, target)) AS heaviest, min(struct(weight, target)) AS lightest FROM edges GROUP BY source;
