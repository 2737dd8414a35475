-- Measurements: timestamps with and without a zone, intervals, doubles with NaN, infinities and both zeros.
CREATE TABLE devices (id INT, site STRING, low DOUBLE, high DOUBLE, installed TIMESTAMP_NTZ);
CREATE TABLE readings (device INT, at TIMESTAMP, value DOUBLE, quality FLOAT);
CREATE TABLE outages (device INT, start TIMESTAMP, stop TIMESTAMP);

INSERT INTO devices VALUES
  (1, 'north', 0.0, 10.0, TIMESTAMP_NTZ'2023-12-31 23:59:59'), (2, 'north', -5.0, 5.0, TIMESTAMP_NTZ'2024-02-29 12:00:00'),
  (3, 'south', DOUBLE('-Infinity'), DOUBLE('Infinity'), TIMESTAMP_NTZ'2024-03-10 02:30:00'), (4, 'south', DOUBLE('NaN'), 1.0, NULL),
  (5, NULL, -0.0D, 0.0, TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'), (6, 'east', NULL, NULL, TIMESTAMP_NTZ'2024-10-27 02:30:00');
INSERT INTO readings VALUES
  (1, TIMESTAMP'2024-03-01 00:00:00', 1.5, FLOAT(0.5)), (1, TIMESTAMP'2024-03-01 00:10:00', 2.25, FLOAT(0.25)),
  (1, TIMESTAMP'2024-03-01 00:20:00', -0.0D, FLOAT(1)), (1, TIMESTAMP'2024-03-01 01:05:00', 0.0, FLOAT(1)),
  (2, TIMESTAMP'2024-03-01 00:00:00', DOUBLE('NaN'), FLOAT('NaN')), (2, TIMESTAMP'2024-03-01 00:30:00', 3.5, NULL),
  (2, TIMESTAMP'2024-03-02 00:00:00', NULL, FLOAT(0.75)), (3, TIMESTAMP'2024-03-31 00:59:59.5', 7.0, FLOAT(0.5)),
  (3, TIMESTAMP'2024-03-31 01:00:00.123456', 8.0, FLOAT(0.5)), (3, TIMESTAMP'2024-03-31 03:00:00', DOUBLE('Infinity'), FLOAT(0)),
  (4, TIMESTAMP'1969-12-31 23:59:59', 0.1, FLOAT(0.1)), (4, TIMESTAMP'2024-10-27 00:30:00', 0.2, FLOAT(0.2)),
  (4, TIMESTAMP'2024-10-27 01:30:00', 0.3, FLOAT(0.3)), (5, NULL, 1e-300, FLOAT('-0.0')), (5, TIMESTAMP'2024-03-01 00:00:00', 1e10, FLOAT(0)),
  (9, TIMESTAMP'2024-03-01 00:00:00', 42.0, FLOAT(1));
INSERT INTO outages VALUES
  (1, TIMESTAMP'2024-03-01 00:05:00', TIMESTAMP'2024-03-01 00:15:00'), (2, TIMESTAMP'2024-02-29 00:00:00', TIMESTAMP'2024-03-01 00:30:00'),
  (3, TIMESTAMP'2024-03-31 00:00:00', NULL), (4, TIMESTAMP'2024-10-27 00:00:00', TIMESTAMP'2024-10-27 02:00:00');

-- transaction: new readings, among them a huge one and more NaNs
INSERT INTO readings VALUES
  (1, TIMESTAMP'2024-03-01 02:00:00', 1e16, FLOAT(0.5)), (2, TIMESTAMP'2024-03-02 00:10:00', DOUBLE('NaN'), FLOAT(0.5)),
  (3, TIMESTAMP'2024-04-01 00:00:00', 9.0, NULL), (6, TIMESTAMP'2024-04-01 00:00:00', -1.0, FLOAT(1)), (6, TIMESTAMP'2024-04-01 00:01:00', -0.0D, FLOAT(1));

-- transaction: the huge one and the infinities go again
DELETE FROM readings WHERE value = 1e16 OR value = DOUBLE('Infinity');
INSERT INTO outages VALUES (6, TIMESTAMP'2024-03-31 23:00:00', TIMESTAMP'2024-04-01 00:00:30');

-- transaction: the NaNs go, zeros change their sign
DELETE FROM readings WHERE isnan(value);
UPDATE readings SET value = -0.0D WHERE value = 0.0;
UPDATE devices SET low = 0.0 WHERE id = 5;

-- transaction: clocks move, devices move
UPDATE readings SET at = at + INTERVAL '1' HOUR WHERE device = 1;
UPDATE devices SET site = 'east' WHERE site IS NULL;
UPDATE outages SET stop = TIMESTAMP'2024-03-31 02:00:00' WHERE stop IS NULL;

-- transaction: a site is emptied, a no-op beside it
DELETE FROM devices WHERE site = 'south';
UPDATE readings SET value = value;

-- transaction: the site is filled again, with infinities of both signs
INSERT INTO devices VALUES (3, 'south', 0.0, 100.0, TIMESTAMP_NTZ'2024-03-10 02:30:00'), (7, 'south', 1.0, 2.0, TIMESTAMP_NTZ'2024-07-01 00:00:00');
INSERT INTO readings VALUES (7, TIMESTAMP'2024-07-01 00:00:00', DOUBLE('-Infinity'), FLOAT(1)), (7, TIMESTAMP'2024-07-01 00:00:01', DOUBLE('Infinity'), FLOAT(1)),
  (3, TIMESTAMP'2024-07-01 12:00:00', 5.0, FLOAT(1)), (3, TIMESTAMP'2024-07-01 12:00:01', NULL, NULL);

-- transaction: mass delete
DELETE FROM readings WHERE at < TIMESTAMP'2024-06-01 00:00:00' OR at IS NULL;
DELETE FROM outages;
