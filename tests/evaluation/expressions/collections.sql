-- table: collections
named_struct('p', i, 'Q q', s)
struct(i, s)
r.x
r.`Y y`
r.z.w
named_struct('p', i, 'q', s).q
array(i, 1, null)
array(s)
array(r)
a[0]
a[i]
a[2]
try_element_at(a, i)
element_at(a, i)
element_at(a, -1)
element_at(t, 1)
get(a, i)
m['1']
m[s]
element_at(m, s)
size(a)
size(m)
cardinality(t)
array_contains(a, 1)
array_contains(a, i)
array_contains(t, s)
map_contains_key(m, s)
a || a
concat(t, array(s))
array_max(a)
array_min(a)
array_max(t)
array_position(a, i)
array_position(t, s)
sort_array(a)
sort_array(a, false)
sort_array(t)
array_join(t, ',')
! array_join(t, ',', 'null')
map_keys(m)
map_values(m)
! transform(a, x -> x + 1)
! array_distinct(a)
