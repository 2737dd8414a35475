-- table: integers
i1 = i2
i1 <> i2
i1 < i2
i1 <= i2
i1 > i2
i1 >= i2
i1 <=> i2
y1 = y2
h1 < h2
l1 >= l2
l1 <=> i2
i1 = 3
i1 > 2.5
i1 between -1 and 3
i1 + 1 > 0
i1 - 1 <= 3
i1 * 2 = 6
10 - i1 < 5
-i1 > 0
(i1 + 0) = i1
cast(i1 as tinyint) = 3
i1 in (1, 3, i2)
i1 in (1, null)
i1 not in (0, 3)
i1 not in (0, null)
l1 in (0, -1, 9223372036854775807)
i1 in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
l1 in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, null)
i1 is null
i1 is not null
greatest(i1, i2)
least(i1, i2, 1)
greatest(y1, y2, null)
greatest(l1, l2)
-- table: floats
d1 = d2
d1 <> d2
d1 < d2
d1 <= d2
d1 > d2
d1 >= d2
d1 <=> d2
f1 = f2
f1 < f2
f1 <=> f2
f1 > d2
d1 = double('NaN')
d1 = -0.0D
d1 in (0.0D, 1.0D, double('NaN'))
d1 not in (0.0D, d2)
f1 in (-0.0F, float('inf'))
d1 in (1D, 2D, 3D, 4D, 5D, 6D, 7D, 8D, 9D, 10D, 0D, double('NaN'))
d1 in (1D, 2D, 3D, 4D, 5D, 6D, 7D, 8D, 9D, 10D, -0D, null)
greatest(d1, d2)
least(d1, d2)
greatest(f1, f2)
least(f1, f2, 1.0F)
isnan(d1)
isnan(f1)
nanvl(d1, d2)
nanvl(f1, f2)
d1 is null
@AtLeastNNonNulls(2, 0) d1
@AtLeastNNonNulls(1, 0) f1
-- table: decimals
a1 = a2
a1 < a2
a1 <=> a2
w1 >= w2
a1 > 0.5
a1 = 3.50
a1 between -1.00 and 33.33
p1 = a2
z1 < w2
a1 in (0.01, 33.33, 0.50)
a1 in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 0.5, 33.33)
w1 = 0.0000000001
w1 > 1e-9BD
greatest(a1, a2)
least(w1, w2)
-- table: strings
s1 = s2
s1 <> s2
s1 < s2
s1 >= s2
s1 <=> s2
s1 = 'it''s'
s1 > 'é'
s1 = '😀b😀'
s1 in ('a', 'ß', '%_\\', '')
s1 in ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'null', 'ß', 'İstanbul', '😀b😀')
s1 in ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', null)
greatest(s1, s2)
least(s1, s2)
nullif(s1, '')
! s1 collate UTF8_LCASE = 'a'
! lower(s1 collate UNICODE_CI)
-- table: strings_with_nul
s = t
s < t
-- table: binaries
b1 = b2
b1 < b2
b1 <=> b2
b1 = X'00FFAB'
b1 in (X'', X'61')
greatest(b1, b2)
-- table: booleans
p = q
p < q
p <=> q
p in (true)
greatest(p, q)
-- table: dates
d = e
d < e
d <=> e
d >= date'1582-10-15'
d between date'1970-01-01' and date'2020-01-31'
d in (date'1970-01-01', date'0001-01-01', date'9999-12-31')
d in (date'1970-01-01', date'1970-01-02', date'1970-01-03', date'1970-01-04', date'1970-01-05', date'1970-01-06', date'1970-01-07', date'1970-01-08', date'1970-01-09', date'1970-01-10', date'0001-01-01', date'2000-02-29')
greatest(d, e)
least(d, e)
! d = date'-0044-03-15'
! d = date'+12000-01-01'
-- table: times
t = u
t < u
t <=> u
t >= timestamp'2020-03-08 03:00:00'
t = timestamp'2020-11-01 01:30:00'
t = timestamp'1582-10-10 01:00:00'
t > timestamp'1500-02-28 23:59:59.999999'
t in (timestamp'2020-11-01 01:30:00', timestamp'1970-01-01 00:00:00')
t in (timestamp'1970-01-01 00:00:01', timestamp'1970-01-01 00:00:02', timestamp'1970-01-01 00:00:03', timestamp'1970-01-01 00:00:04', timestamp'1970-01-01 00:00:05', timestamp'1970-01-01 00:00:06', timestamp'1970-01-01 00:00:07', timestamp'1970-01-01 00:00:08', timestamp'1970-01-01 00:00:09', timestamp'1970-01-01 00:00:10', timestamp'1970-01-01 00:00:11', timestamp'1970-01-01 00:00:00')
l = m
l <= m
l > timestamp_ntz'2020-03-08 02:30:00'
l in (timestamp_ntz'2020-03-08 02:30:00', timestamp_ntz'1970-01-01 00:00:00')
greatest(t, u)
least(l, m)
-- table: collections
! a = array(1)
! r = named_struct('x', 1, 'Y y', '1', 'z', named_struct('w', 1))
a is null
