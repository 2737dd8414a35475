-- Text and bytes: unicode, empty strings, collation traps, patterns, binary, JSON.
CREATE TABLE documents (id INT, title STRING, body STRING, raw BINARY, lang STRING);
CREATE TABLE words (word STRING, weight INT, tag BINARY);
CREATE TABLE events (id INT, payload STRING);

INSERT INTO documents VALUES
  (1, 'Hello', 'hello world hello', X'48656C6C6F', 'en'), (2, 'hello', 'Hello  World', X'', 'en'), (3, 'Grüße', 'straße grüße STRASSE', X'C3BC', 'de'),
  (4, '日本語', '日本 語 日本', X'E697A5', 'ja'), (5, '', '', NULL, NULL), (6, NULL, NULL, X'00', 'en'), (7, 'emoji 😀', '😀 👍🏽 é é', X'F09F9880', 'xx'),
  (8, ' padded ', '  tabs\tand\nlines ', X'00FF00', 'en'), (9, 'İstanbul', 'ıstanbul İSTANBUL', X'FF', 'tr'), (10, 'a%b_c\\d', '100% a_b', X'FFFE', 'en'),
  (11, 'O''Brien; DROP TABLE documents; --', '"quoted" `ticks`', X'27', 'en');
INSERT INTO words VALUES ('hello', 3, X'01'), ('Hello', 2, X'02'), ('world', 1, X''), ('grüße', 5, NULL), ('日本', 7, X'E697A5'), ('', 0, X'00'), (NULL, 9, X'01'), ('hello', 4, X'01'), ('é', 1, X'FF'), ('é', 2, X'FF');
INSERT INTO events VALUES
  (1, '{"user": "ann", "n": 1, "tags": ["a", "b"], "geo": {"x": 1.5}}'), (2, '{"user": "bob", "n": 2.5, "tags": []}'), (3, '{"user": null, "n": 12345678901234567890}'),
  (4, '[1, 2, 3]'), (5, 'null'), (6, NULL), (7, '{"user": "ann", "n": -3, "ok": true, "when": "2024-01-01"}');

-- transaction: more words
INSERT INTO words VALUES ('straße', 8, X'DF'), ('World', 1, X'0203'), ('👍🏽', 6, X'F09F'), ('hello ', 1, X'01');
INSERT INTO documents VALUES (12, 'zebra', 'world of zebras', X'7A', 'en');

-- transaction: case folds on both sides
UPDATE documents SET lang = upper(lang) WHERE lang = 'de';
UPDATE words SET word = lower(word) WHERE weight < 3;

-- transaction: titles become bodies
UPDATE documents SET title = body WHERE id IN (3, 4, 5, 6);
UPDATE documents SET raw = X'00' WHERE raw = X'';

-- transaction: nothing
UPDATE documents SET title = concat(title, ''), raw = raw;

-- transaction: the odd ones go
DELETE FROM documents WHERE title IS NULL OR title = '' OR lang IS NULL;
DELETE FROM words WHERE tag = X'01';
DELETE FROM events WHERE payload IS NULL OR id = 1;

-- transaction: long strings and their removal elsewhere
INSERT INTO documents VALUES (13, repeat('long ', 2000), repeat('ü', 5000), CAST(repeat('b', 3000) AS BINARY), 'en'), (14, NULL, '', X'', '');
DELETE FROM documents WHERE lang = 'en' AND id < 10;
INSERT INTO events VALUES (8, '{"user": "cid", "tags": ["a", "z", "a"], "n": 0}');

-- transaction: mass delete, and one word comes back
DELETE FROM words;
INSERT INTO words VALUES ('hello', 3, X'01');
