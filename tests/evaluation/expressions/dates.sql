-- table: dates
year(d)
quarter(d)
month(d)
day(d)
dayofyear(d)
dayofweek(d)
weekday(d)
weekofyear(d)
extract(yearofweek from d)
date_add(d, n)
date_sub(d, n)
d + 1
d - 3
datediff(d, e)
add_months(d, n)
add_months(d, 1)
d + interval '3' month
d - interval '1-2' year to month
d + interval '10' day
last_day(d)
trunc(d, 'year')
trunc(d, 'quarter')
trunc(d, 'MONTH')
trunc(d, 'week')
! trunc(d, 'nonsense')
next_day(d, 'Mon')
next_day(d, 'sunday')
make_date(n, n, n)
make_date(year(d), month(d), n)
make_date(2000 + n, 2, 29)
make_date(2019, 2, day(d))
unix_date(d)
date_from_unix_date(n)
d - e > interval '10' day
d - e
-- table: times
hour(t)
minute(t)
second(t)
hour(l)
minute(l)
second(l)
extract(second from t)
extract(second from l)
year(t)
month(l)
dayofweek(t)
date_trunc('year', t)
date_trunc('quarter', t)
date_trunc('month', t)
date_trunc('week', t)
date_trunc('day', t)
date_trunc('hour', t)
date_trunc('minute', t)
date_trunc('second', t)
date_trunc('millisecond', t)
date_trunc('microsecond', t)
date_trunc('month', l)
t + interval '1' day
t - interval '36' hour
t + interval '90' minute
t + interval '1 02:03:04.5' day to second
l + interval '1' day
l - interval '25' hour
t + interval '1' month
t - interval '1-1' year to month
l + interval '13' month
t - u > interval '1' day
t - u = t - t
l - m < interval '5' hour
t - d > interval '1' hour
t - u
l - m
v
-v
abs(v)
v + (t - u)
v - interval '1' day
v > interval '1' hour
greatest(v, l - m)
v * 2
v * n
! v / 2
! v * 1.5
extract(day from v)
extract(hour from v)
extract(minute from v)
extract(second from v)
l + v
date_trunc('day', l + v)
coalesce(v, interval '3' minute)
if(t > u, t - u, u - t)
unix_seconds(t)
unix_millis(t)
unix_micros(t)
timestamp_seconds(n)
timestamp_millis(n)
timestamp_micros(n)
@PreciseTimestampConversion t
@PreciseTimestampConversion n
date_add(t, 3)
datediff(t, u)
! t + make_interval(0, 0, 0, 1)
next_day(t, 'MO')
date_format(t, 'yyyy-MM')
date_format(t, 'yyyyMMdd HH:mm:ss')
date_format(l, 'dd/MM/yyyy hh:mm a')
! date_format(t, 'E, d MMM')
date_format(t, 'EEEE, dd MMMM yyyy')
date_format(t, 'EEE MMM dd HH:mm:ss.SSS')
date_format(l, 'ss.SSSSSS')
date_format(d, 'yyyy-MM-dd')
! date_format(t, "yyyy'y'")
unix_timestamp(t)
to_unix_timestamp(t)
from_unixtime(n)
from_unixtime(n div 1000000, 'yyyy-MM-dd')
! months_between(t, u)
