-- linear: get_json_object
SELECT id, get_json_object(payload, '$.user') AS u, get_json_object(payload, '$.tags[0]') AS t, json_array_length(payload) AS n FROM events;

-- linear: variant fields
SELECT id, variant_get(parse_json(payload), '$.user', 'string') AS u, try_variant_get(parse_json(payload), '$.n', 'double') AS n, schema_of_variant(parse_json(payload)) AS s FROM events;

-- linear: variant by colon
SELECT id, parse_json(payload):user::string AS u, parse_json(payload):geo.x::double AS x FROM events;

-- linear: variant is null
SELECT id, is_variant_null(parse_json(payload)) AS n, to_json(parse_json(payload)) AS text, try_parse_json(concat(payload, '}')) IS NULL AS broken FROM events;

-- linear: variant exploded
SELECT e.id, v.pos, v.key, to_json(v.value) AS value FROM events e, LATERAL variant_explode(parse_json(e.payload)) v;

-- linear: variants as values of the view
SELECT id, parse_json(payload) AS v FROM events WHERE payload IS NOT NULL;

-- stateful: users by variant
SELECT variant_get(parse_json(payload), '$.user', 'string') AS u, count(*) AS n FROM events GROUP BY 1;

-- linear: from_json
SELECT id, from_json(payload, 'user STRING, tags ARRAY<STRING>, geo STRUCT<x: DOUBLE>') AS j FROM events;

-- stateful: tags counted
SELECT tag, count(*) AS n FROM (SELECT explode(from_json(payload, 'tags ARRAY<STRING>').tags) AS tag FROM events) GROUP BY tag;

-- linear: json_tuple
SELECT e.id, j.u, j.n FROM events e LATERAL VIEW json_tuple(payload, 'user', 'n') j AS u, n;

-- linear: csv and maps from text
SELECT id, str_to_map(lang, ',', ':') AS m, from_csv(concat(id, ',', 'x'), 'n INT, s STRING') AS c, to_csv(struct(id, lang)) AS t FROM documents WHERE title NOT LIKE '%O%' AND length(title) < 20;

-- stateful: users joined through JSON
SELECT a.id AS a, b.id AS b FROM events a JOIN events b ON get_json_object(a.payload, '$.user') = get_json_object(b.payload, '$.user') AND a.id < b.id;
