-- linear: parts of a timestamp
SELECT device, at, year(at) AS y, hour(at) AS h, minute(at) AS m, second(at) AS s, extract(SECOND FROM at) AS fraction, dayofmonth(at) AS d FROM readings;

-- linear: truncation
SELECT device, date_trunc('HOUR', at) AS h, date_trunc('DAY', at) AS d, date_trunc('WEEK', at) AS w, date_trunc('QUARTER', at) AS q, CAST(at AS DATE) AS day FROM readings;

-- linear: timestamp arithmetic
SELECT device, at + INTERVAL '1' DAY AS tomorrow, at - INTERVAL '90' MINUTE AS before, at + INTERVAL '1' MONTH AS next_month,
  timestampadd(HOUR, 25, at) AS later, timestampdiff(MINUTE, TIMESTAMP'2024-03-01 00:00:00', at) AS minutes FROM readings;

-- linear: difference of timestamps is an interval
SELECT device, stop - start AS length, unix_timestamp(stop) - unix_timestamp(start) AS seconds FROM outages;

-- linear: intervals multiplied and compared
SELECT device, (stop - start) * 2 AS twice, (stop - start) > INTERVAL '15' MINUTE AS long FROM outages;

-- linear: parts of an interval
SELECT device, extract(HOUR FROM stop - start) AS h, extract(MINUTE FROM stop - start) AS m, extract(DAY FROM stop - start) AS d FROM outages;

-- linear: year-month intervals as text
SELECT id, CAST((INTERVAL '1' MONTH) * id AS STRING) AS months, installed + (INTERVAL '1' MONTH) * id AS later FROM devices;

-- linear: without a zone
SELECT id, installed, year(installed) AS y, CAST(installed AS DATE) AS d, installed + INTERVAL '36' HOUR AS later, CAST(installed AS TIMESTAMP) AS zoned FROM devices;

-- linear: conversion between zones
SELECT device, from_utc_timestamp(at, 'Europe/Berlin') AS berlin, to_utc_timestamp(at, 'America/New_York') AS utc,
  convert_timezone('UTC', 'Asia/Kathmandu', CAST(at AS TIMESTAMP_NTZ)) AS kathmandu FROM readings;

-- linear: timestamps to and from text and numbers
SELECT device, CAST(at AS STRING) AS text, date_format(at, 'yyyy-MM-dd HH:mm:ss.SSS') AS formatted, CAST(at AS BIGINT) AS epoch,
  unix_micros(at) AS micros, to_timestamp('2024-02-29 10:11:12') AS parsed, timestamp_seconds(device) AS from_epoch FROM readings;

-- linear: filter on a timestamp
SELECT device, value FROM readings WHERE at >= TIMESTAMP'2024-03-01 00:10:00' AND at < TIMESTAMP'2024-03-31 02:00:00';

-- linear: filter on a timestamp without a zone
SELECT id FROM devices WHERE installed BETWEEN TIMESTAMP_NTZ'2024-01-01 00:00:00' AND TIMESTAMP_NTZ'2024-06-30 00:00:00';

-- stateful: hourly buckets
SELECT device, date_trunc('HOUR', at) AS hour, count(*) AS n, max(value) AS high FROM readings GROUP BY device, date_trunc('HOUR', at);

-- stateful: tumbling windows
SELECT window.start AS start, window.end AS stop, count(*) AS n FROM readings GROUP BY window(at, '30 minutes');

-- stateful: sliding windows
SELECT device, window(at, '1 hour', '30 minutes').start AS start, count(*) AS n FROM readings GROUP BY device, window(at, '1 hour', '30 minutes');

-- stateful: timestamps as group keys and extremes
SELECT at, count(*) AS n, min(device) AS first FROM readings GROUP BY at;

-- stateful: first and last reading
SELECT device, min(at) AS first, max(at) AS last, max(at) - min(at) AS span FROM readings GROUP BY device;

-- stateful: sum and average of intervals
SELECT sum(stop - start) AS total, max(stop - start) AS longest FROM outages;

-- stateful: readings during an outage
SELECT r.device, r.at, r.value FROM readings r JOIN outages o ON r.device = o.device AND r.at BETWEEN o.start AND o.stop;

-- stateful: readings outside every outage
SELECT r.device, r.at, r.value FROM readings r WHERE NOT EXISTS
  (SELECT 1 FROM outages o WHERE o.device = r.device AND r.at >= o.start AND (r.at < o.stop OR o.stop IS NULL));

-- stateful: overlapping outages of any two devices
SELECT a.device AS a, b.device AS b FROM outages a JOIN outages b ON a.device < b.device AND a.start < b.stop AND b.start < a.stop;

-- stateful: join on a timestamp
SELECT a.device AS a, b.device AS b, a.at FROM readings a JOIN readings b ON a.at = b.at AND a.device < b.device;

-- stateful: latest reading per device by subquery
SELECT device, value FROM readings r WHERE at = (SELECT max(at) FROM readings x WHERE x.device = r.device);

-- touched groups: gaps between readings
SELECT device, at, at - lag(at) OVER (PARTITION BY device ORDER BY at) AS gap FROM readings WHERE at IS NOT NULL;

-- touched groups: moving average over an hour
SELECT device, at, count(value) OVER (PARTITION BY device ORDER BY at RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW) AS n FROM readings WHERE at IS NOT NULL;

-- touched groups: latest value per device
SELECT device, max_by(value, at) AS latest, min_by(value, at) AS first FROM readings WHERE at IS NOT NULL GROUP BY device;

-- touched groups: sessions by gaps
SELECT device, sum(fresh) OVER (PARTITION BY device ORDER BY at) AS session, at FROM
  (SELECT device, at, CASE WHEN at - lag(at) OVER (PARTITION BY device ORDER BY at) <= INTERVAL '15' MINUTE THEN 0 ELSE 1 END AS fresh FROM readings WHERE at IS NOT NULL);

-- stateful: the newest five
SELECT device, at FROM readings ORDER BY at DESC NULLS LAST, device LIMIT 5;

-- linear: a sequence of timestamps
SELECT device, explode(sequence(start, stop, INTERVAL '10' MINUTE)) AS tick FROM outages WHERE stop < start + INTERVAL '1' HOUR;
