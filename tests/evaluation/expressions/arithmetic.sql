-- table: integers
y1 + y2
y1 - y2
y1 * y2
y1 % y2
h1 + h2
h1 - h2
h1 * h2
h1 % h2
i1 + i2
i1 - i2
i1 * i2
i1 % i2
l1 + l2
l1 - l2
l1 * l2
l1 % l2
i1 + 1
i1 * -3
y1 + 1Y
l1 div l2
i1 div i2
i1 div 2
i1 / i2
l1 / l2
y1 / 4
i1 % 3
l1 + i2
-y1
-h1
-i1
-l1
abs(y1)
abs(h1)
abs(i1)
abs(l1)
pmod(y1, y2)
pmod(i1, i2)
pmod(l1, l2)
pmod(i1, 3)
try_add(i1, i2)
try_subtract(l1, l2)
try_multiply(i1, i2)
try_divide(i1, i2)
try_mod(i1, i2)
i1 & i2
l1 | l2
y1 ^ y2
h1 & h2
~i1
~y1
~l1
round(i1)
round(l1, 2)
i1 * 1.5
l1 / 3.0
i1 + 0.1
round(i1, -1)
round(y1, -2)
round(h1, -1)
round(l1, -3)
round(l1, -30)
shiftright(i1, 2)
shiftright(l1, 0)
shiftright(l1, 63)
! shiftright(i1, 40)
! shiftleft(i1, 2)
bit_count(i1)
bit_count(l1)
bit_count(y1)
-- table: floats
f1 + f2
f1 - f2
f1 * f2
f1 % f2
f1 / f2
d1 + d2
d1 - d2
d1 * d2
d1 % d2
d1 / d2
d1 / 3
d1 * 2
d1 + f2
-f1
-d1
abs(f1)
abs(d1)
sqrt(d1)
sqrt(f1)
signum(d1)
signum(f2)
try_divide(d1, d2)
@NormalizeNaNAndZero d1
@NormalizeNaNAndZero f1
@KnownFloatingPointNormalized d1
@KnownNotNull coalesce(d1, 0D)
@KnownNullable d1
! exp(d1)
! pow(d1, d2)
! ln(d1)
round(d1, 2)
round(d1)
round(d1, 9)
! round(d1, -1)
! round(f1, 2)
-- table: whole_floats
floor(d)
round(d)
round(d, 1)
round(d * 1.001D, 3)
ceil(d)
floor(f)
ceil(f)
-- table: decimals
a1 + a2
a1 - a2
a1 * a2
a1 / a2
a1 % a2
p1 + a2
p1 * p2
p1 * (1 - p2)
p1 * (1 - a2) * (1 + a1)
p1 / p2
100.00 * p1 / p2
a1 / p2
a1 / k2
k1 / k2
k1 / 3
s1 + a1
s1 * s2
s1 / s2
s1 % a2
w1 + w2
w1 - w2
w1 * a2
w1 * w2
w1 / w2
w1 / a2
a1 / w2
w1 % w2
z1 + z2
z1 - a2
z1 * k2
z1 / k2
z1 + w2
u1 * u2
u1 + a1
u1 / u2
a1 * 0.5
a1 * i
a1 + 1
a1 / 2
p1 * 0.0001
-a1
-s1
! -w1
abs(a1)
abs(s1)
! abs(w1)
a1 % 3
k1 % k2
! pmod(a1, a2)
a1 div a2
p1 div a2
w1 div w2
s1 div k2
z1 div k2
round(a1)
round(a1, 1)
round(a1, 2)
round(w1, 3)
round(s1, 4)
round(u1, 2)
round(z1)
floor(a1)
ceil(a1)
floor(w1)
ceil(w1)
ceil(k1)
floor(z1)
try_add(w1, w2)
try_divide(a1, a2)
signum(a1)
@UnscaledValue a1
@UnscaledValue p1
@CheckOverflow(5, 1) a1
@CheckOverflow(38, 4) w1
! round(a1, -1)
! bround(a1, 1)
-- table: integers
@MakeDecimal(10, 2) l1
@MakeDecimal(18, 0) l1
@MakeDecimal(20, 6) l1
