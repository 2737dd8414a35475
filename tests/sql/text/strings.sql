-- linear: case and length
SELECT id, upper(title) AS u, lower(title) AS l, initcap(body) AS i, length(title) AS n, octet_length(title) AS bytes, bit_length(title) AS bits, char_length(body) AS c FROM documents;

-- linear: NULLs beside letters that are not ASCII
SELECT id, upper(title) AS u, lower(body) AS l FROM documents WHERE id IN (3, 6);

-- linear: cutting
SELECT id, substring(title, 2, 3) AS s, substring(title, -3, 2) AS tail, left(title, 2) AS l, right(title, 2) AS r, substring_index(body, ' ', 1) AS word, split_part(body, ' ', 2) AS second FROM documents;

-- linear: trimming and padding
SELECT id, trim(title) AS t, ltrim(body) AS lt, rtrim(body) AS rt, btrim(title, 'hHo') AS b, lpad(title, 8, '*') AS lp, rpad(title, 3, '*') AS rp FROM documents;

-- linear: searching
SELECT id, instr(body, 'o') AS i, locate('o', body, 6) AS l, position('world' IN body) AS p, contains(body, 'world') AS c, startswith(title, 'h') AS s, endswith(title, 'o') AS e FROM documents;

-- linear: replacing
SELECT id, replace(body, 'hello', 'bye') AS r, translate(body, 'elo', '310') AS t, overlay(title PLACING '__' FROM 2 FOR 1) AS o, reverse(title) AS b, repeat(title, 2) AS d FROM documents;

-- linear: LIKE with wildcards and escapes
SELECT id, title FROM documents WHERE title LIKE '%\\%%' OR title LIKE 'h_llo' OR body LIKE '%!_%' ESCAPE '!' OR title ILIKE 'HELLO';

-- linear: regular expressions
SELECT id, regexp_extract(body, '([a-z]+) ([a-z]+)', 2) AS second, regexp_replace(body, '[aeiou]', '_') AS masked, regexp_count(body, 'l+') AS n, body RLIKE '^[A-Z]' AS capital, regexp_substr(body, '[0-9]+') AS digits FROM documents;

-- linear: splitting
SELECT id, split(body, ' ') AS parts, size(split(body, '\\s+')) AS n, sentences(title) AS s FROM documents;

-- linear: words exploded
SELECT id, explode(split(body, ' ')) AS word FROM documents;

-- linear: comparison of strings is by bytes
SELECT id, title < 'a' AS before_a, title > 'Z' AS after_z, title = 'hello' AS same, title <=> NULL AS missing FROM documents;

-- linear: a collation that ignores case
SELECT id FROM documents WHERE title COLLATE UTF8_LCASE = 'HELLO';

-- linear: codes and hashes
SELECT id, ascii(title) AS a, chr(id + 64) AS c, md5(body) AS m, sha2(body, 256) AS s, crc32(CAST(body AS BINARY)) AS crc, hash(title) AS h, xxhash64(title, id) AS x, soundex(title) AS sx, levenshtein(title, 'hello') AS d FROM documents;

-- linear: encodings
SELECT id, hex(raw) AS h, base64(raw) AS b, unhex(hex(title)) AS u, encode(title, 'UTF-8') AS e, decode(encode(title, 'UTF-16'), 'UTF-16') AS back, unbase64(base64(raw)) AS raw2 FROM documents;

-- linear: binary functions
SELECT id, length(raw) AS n, raw || X'FF' AS longer, substring(raw, 1, 1) AS first, raw = X'00' AS zero, raw > X'7F' AS high, CAST(title AS BINARY) AS bytes FROM documents;

-- linear: formatting
SELECT id, format_string('%05d|%s|%.2f', id, title, id / 3) AS f, format_number(id * 1234.567, 2) AS n, printf('%x', id) AS x, conv(CAST(id AS STRING), 10, 2) AS two, bin(id) AS b FROM documents;

-- linear: to numbers, strictly and leniently
SELECT id, try_cast(title AS INT) AS i, try_to_number(body, '999') AS n, CAST(CAST(id AS STRING) AS INT) AS back, try_cast(lang AS DATE) AS d FROM documents;

-- linear: quotes and odd literals
SELECT id, 'it''s' AS q, "double" AS d, r'raw\n' AS r, '\u00e9' AS e, 'tab\there' AS t, '日本' AS j FROM documents WHERE title NOT LIKE '%DROP%' OR title IS NULL;

-- stateful: group by a string
SELECT lang, count(*) AS n, min(title) AS first, max(title) AS last, sum(length(body)) AS letters FROM documents GROUP BY lang;

-- stateful: group by folded text
SELECT lower(word) AS w, sum(weight) AS weight, count(*) AS n FROM words GROUP BY lower(word);

-- stateful: group by a collated string
SELECT count(*) AS n, sum(weight) AS w FROM words GROUP BY word COLLATE UTF8_LCASE;

-- stateful: group by binary
SELECT tag, count(*) AS n, min(word) AS first FROM words GROUP BY tag;

-- stateful: extremes of binary
SELECT lang, min(raw) AS low, max(raw) AS high FROM documents GROUP BY lang;

-- stateful: distinct binary
SELECT DISTINCT raw FROM documents;

-- stateful: join on strings
SELECT d.id, w.weight FROM (SELECT id, explode(split(body, ' ')) AS word FROM documents) d JOIN words w ON d.word = w.word;

-- stateful: score of documents
SELECT d.id, sum(w.weight) AS score FROM (SELECT id, explode(split(lower(body), ' ')) AS word FROM documents) d LEFT JOIN words w ON d.word = w.word GROUP BY d.id;

-- stateful: join on binary
SELECT d.id, w.word FROM documents d JOIN words w ON d.raw = w.tag;

-- stateful: join on LIKE
SELECT d.id, w.word FROM documents d JOIN words w ON d.body LIKE concat('%', w.word, '%');

-- stateful: join on a prefix
SELECT d.id, w.word FROM documents d LEFT JOIN words w ON startswith(d.title, w.word) AND w.word <> '';

-- stateful: words that no document has
SELECT word FROM words WHERE word NOT IN (SELECT explode(split(body, ' ')) FROM documents WHERE body IS NOT NULL);

-- stateful: unknown words
SELECT DISTINCT word FROM (SELECT explode(split(body, ' ')) AS word FROM documents) WHERE word NOT IN (SELECT word FROM words);

-- stateful: set operations on text
SELECT title AS s FROM documents INTERSECT SELECT word FROM words;

-- stateful: titles in byte order
SELECT id, title FROM documents ORDER BY title DESC NULLS LAST, id LIMIT 5;

-- stateful: binary in order
SELECT id, raw FROM documents ORDER BY raw NULLS FIRST, id LIMIT 5;

-- touched groups: listagg of text
SELECT lang, listagg(title, '; ') WITHIN GROUP (ORDER BY id) AS titles FROM documents GROUP BY lang;

-- touched groups: listagg of binary
SELECT listagg(tag) WITHIN GROUP (ORDER BY tag) AS all FROM words;

-- touched groups: longest title per language
SELECT lang, max_by(title, struct(length(title), id)) AS longest FROM documents GROUP BY lang;

-- touched groups: word ranks
SELECT word, weight, dense_rank() OVER (ORDER BY lower(word) NULLS LAST) AS r, lag(weight) OVER (PARTITION BY lower(word) ORDER BY weight, word) AS previous FROM words;

-- touched groups: vocabulary
SELECT id, array_sort(collect_set(lower(word))) AS vocabulary FROM (SELECT id, explode(split(body, ' ')) AS word FROM documents) GROUP BY id;

-- linear: text and number coercion
SELECT id, id || '' AS s, '1' + id AS n, concat(id, '-', lang) AS c, CAST(id AS STRING) = '1' AS one FROM documents;

-- linear: mask and luhn
SELECT id, mask(title) AS m, luhn_check('4111111111111111') AS l, url_encode(title) AS u, quote(lang) AS q FROM documents;
