-- linear: comparisons with NaN, zeros and infinities
SELECT device, value, value > 1 AS above, value = 0.0 AS zero, value = DOUBLE('NaN') AS nan_equal, value < DOUBLE('NaN') AS below_nan, isnan(value) AS n FROM readings;

-- linear: NaN is greater than everything
SELECT device, value FROM readings WHERE value > 5;

-- linear: arithmetic on doubles
SELECT device, value + 1 AS plus, value * 0 AS nothing, abs(value) AS a, -value AS minus, value / 4 AS quarter, quality * 2 AS q FROM readings;

-- linear: mathematics
SELECT device, round(exp(value / 100), 9) AS e, sqrt(value) AS s, signum(value) AS sign, round(ln(value), 9) AS l, floor(quality) AS f, pow(quality, 2) AS p
FROM readings WHERE value < 100 OR value IS NULL;

-- linear: casts of floats
SELECT device, CAST(quality AS DOUBLE) AS d, CAST(value AS STRING) AS s, CAST(value AS FLOAT) AS f FROM readings;

-- linear: try_cast refuses what does not fit
SELECT device, try_cast(value AS INT) AS i, try_cast(value AS DECIMAL(5, 2)) AS d, try_divide(value, quality) AS q FROM readings;

-- linear: rounding of doubles
SELECT device, round(value, 1) AS r, bround(quality, 1) AS b, nanvl(value, -1.0) AS n FROM readings;

-- stateful: NaN and zeros as group keys
SELECT value, count(*) AS n, min(device) AS first FROM readings GROUP BY value;

-- stateful: distinct floats
SELECT DISTINCT quality FROM readings;

-- stateful: count distinct of doubles
SELECT count(DISTINCT value) AS v, count(DISTINCT quality) AS q FROM readings;

-- stateful: join on doubles, NaN meets NaN, zero meets minus zero
SELECT a.device AS a, b.device AS b FROM readings a JOIN readings b ON a.value = b.value;

-- stateful: null-safe join on doubles
SELECT a.device AS a, b.id AS b FROM readings a LEFT JOIN devices b ON a.value <=> b.low;

-- stateful: sums that must not drift
SELECT device, sum(value) AS total, avg(value) AS mean, count(value) AS n FROM readings GROUP BY device;

-- stateful: global sums that must not drift
SELECT sum(value) AS total, sum(quality) AS q FROM readings WHERE device <> 5;

-- stateful: extremes with NaN
SELECT device, min(value) + 0D AS low, max(value) + 0D AS high, min(quality) + 0D AS lq, max(quality) + 0D AS hq FROM readings GROUP BY device;

-- stateful: spread
SELECT device, stddev(value) AS s, stddev_pop(value) AS sp, variance(value) AS v, var_pop(value) AS vp FROM readings WHERE value < 1e9 GROUP BY device;

-- stateful: skewness and kurtosis
SELECT round(skewness(value), 6) AS s, round(kurtosis(value), 6) AS k FROM readings WHERE value < 1e9 AND value > -1e9;

-- stateful: correlation and covariance
SELECT round(corr(value, quality), 9) AS c, round(covar_pop(value, quality), 9) AS cp, round(covar_samp(value, quality), 9) AS cs FROM readings WHERE value < 1e9 AND value > -1e9;

-- stateful: correlation per site
SELECT d.site, round(covar_pop(r.value, r.quality), 9) AS c, count(*) AS n FROM readings r JOIN devices d ON d.id = r.device
WHERE abs(r.value) < 1e9 GROUP BY d.site;

-- stateful: sum distinct
SELECT sum(DISTINCT value) AS v, avg(DISTINCT quality) AS q FROM readings WHERE value < 1e9 AND value > -1e9;

-- stateful: out of range
SELECT r.device, r.value FROM readings r JOIN devices d ON d.id = r.device WHERE r.value NOT BETWEEN d.low AND d.high;

-- stateful: nearest below by inequality
SELECT r.device, r.value, max(x.value) + 0D AS below FROM readings r LEFT JOIN readings x ON x.value < r.value GROUP BY r.device, r.value, r.at;

-- stateful: NOT IN with NaN and NULL
SELECT id FROM devices WHERE low NOT IN (SELECT value FROM readings WHERE device < 3);

-- stateful: intersection of doubles
SELECT value FROM readings INTERSECT SELECT low FROM devices;

-- stateful: largest doubles, NaN first
SELECT value, device, at FROM readings ORDER BY value DESC NULLS LAST, device, at LIMIT 4;

-- touched groups: median and percentiles of doubles
SELECT device, median(value) AS m, percentile(value, array(0.25, 0.75)) AS q FROM readings WHERE NOT isnan(value) AND abs(value) < 1e17 GROUP BY device;

-- touched groups: ranks with NaN
SELECT device, value, rank() OVER (ORDER BY value DESC) AS r, count(*) OVER (PARTITION BY value) AS same FROM readings;

-- touched groups: collect with NaN
SELECT device, sort_array(collect_list(value)) AS vs, sort_array(collect_set(quality)) AS qs FROM readings WHERE NOT (value = 0.0) GROUP BY device;

-- touched groups: windowed sums
SELECT device, at, sum(quality) OVER (PARTITION BY device ORDER BY at ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s FROM readings WHERE at IS NOT NULL;

-- stateful: regression
SELECT round(regr_slope(value, quality), 6) AS slope, round(regr_intercept(value, quality), 6) AS intercept, regr_count(value, quality) AS n FROM readings WHERE value < 1e9 AND value > -1e9;

-- touched groups: histogram
SELECT d.site, histogram_numeric(r.device, 5) AS h FROM devices d JOIN readings r ON r.device = d.id GROUP BY d.site;
