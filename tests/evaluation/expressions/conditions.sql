-- table: booleans
p and q
p or q
not p
p and not q or i > 1
if(p, i, 7)
if(p, 'x', null)
case when p then 1 when q then 2 end
case when p then 1.5 when q then 2.25 else i end
case i when 0 then 'zero' when 5 then 'five' else 'other' end
coalesce(i, 3)
coalesce(p, q, false)
nvl2(i, 'some', 'none')
nullif(i, 5)
ifnull(i, 0)
decode(i, 0, 'a', null, 'b', 'c')
case when i > 0 then 10 / i else null end
p = (q or i = 0)
-- table: integers
case when i2 <> 0 then i1 / i2 else 0 end
if(i2 = 0, null, i1 % i2)
coalesce(i1, l2, 5)
case when i1 > i2 then i1 - i2 else i2 - i1 end
-- table: collections
coalesce(a, array(i))
if(i > 0, a, null)
coalesce(r, r)
if(i > 0, r, named_struct('x', i, 'Y y', s, 'z', named_struct('w', i)))
-- table: times
coalesce(t, u)
if(t > u, t, u)
