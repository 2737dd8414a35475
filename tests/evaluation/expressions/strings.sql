-- table: strings
upper(s1)
lower(s1)
reverse(s1)
length(s1)
char_length(s2)
octet_length(s1)
substring(s1, 2, 3)
substring(s1, 0, 2)
substring(s1, -2, 1)
substring(s1, -2)
substring(s1, -10, 9)
substring(s1, 2)
substring(s1, 1, 0)
substring(s1, 1, -1)
substring(s1, n, 2)
substring(s1, 2, n)
substring(s1, n, n)
substr(s1, n)
left(s1, 2)
left(s1, n)
right(s1, 2)
right(s1, n)
s1 || s2
concat(s1, s2, 'x')
concat(s1)
concat_ws(',', s1, s2)
concat_ws(s1, s2, 'x', cast(null as string))
concat_ws(s1, s2, s1, s2)
! concat_ws(',', array(s1, s2))
concat_ws(',')
trim(s1)
ltrim(s1)
rtrim(s1)
btrim(s1)
trim(both 'xa' from s1)
trim(leading s2 from s1)
trim(trailing 'é' from s1)
rtrim('b😀', s1)
s1 like 'a%b_'
s1 like '%a%b%'
s1 like '_'
s1 like '__%'
s1 like '%\\%\\_%\\\\'
s1 like 'a_b'
s1 not like '%X%X%'
s1 like 'a/%b%c' escape '/'
s1 like '%/_%/%' escape '/'
s1 like '_%ä_'
s1 like 'a%'
s1 like '%b'
s1 like '%é%'
s1 like 'a%c'
s1 like ''
! s1 like s2
! s1 like any ('%a%b', 'c%d_')
! s1 rlike 'a+'
startswith(s1, s2)
startswith(s1, 'a')
endswith(s1, s2)
contains(s1, s2)
contains(s1, '')
replace(s1, 'a', 'xy')
replace(s1, s2, '-')
replace(s1, '', '-')
translate(s1, 'abX', 'x😀')
translate(s1, s2, 'é1')
lpad(s1, 5, 'xy')
rpad(s1, 5, '😀é')
lpad(s1, n, 'xy')
rpad(s1, n, ' ')
lpad(s1, 2, s2)
rpad(s1, 2)
instr(s1, 'a')
instr(s1, s2)
instr(s1, '😀')
! locate('a', s1, 2)
repeat(s1, 3)
repeat(s1, n)
space(n)
ascii(s1)
! initcap(s1)
! soundex(s1)
-- table: strings_with_nul
length(s)
s || t
contains(s, t)
startswith(s, t)
endswith(s, t)
s like '%b%_'
replace(s, t, 'x')
instr(s, t)
trim(both t from s)
substring(s, 2, 1)
upper(s)
reverse(s)
lpad(s, 5, t)
repeat(s, 2)
cast(s as binary)
translate(s, t, 'x')
concat_ws(s, t, t)
ascii(s)
octet_length(s)
-- table: binaries
length(b1)
octet_length(b1)
b1 || b2
md5(b1)
