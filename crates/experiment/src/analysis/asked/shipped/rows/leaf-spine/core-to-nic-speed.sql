insert into flows (trial, bytes_asked, bytes_received, start_ns, end_ns, ideal_ns)
with recursive n(i) as (values (0) union all select i + 1 from n where i < 299)
select trial, 1000, 1000, 5e7 + i * 1000, 5e7 + i * 1000 + iif(ratio = 1, 2000, 1000), 500 from trials, n;
insert into links (trial, time_ns, node, interface, peer, class, sent_bytes)
with recursive n(i) as (values (0) union all select i + 1 from n where i < 20)
select trial, t.i * 5e7, 'leaf' || (leaf.i + 1), 'spine' || (spine.i + 1), 'spine' || (spine.i + 1), 'spine-leaf', t.i * 1000
from trials, n t, n leaf, n spine where t.i <= 10 and leaf.i < 5 and spine.i < case ratio when 1 then 20 when 2 then 10 when 4 then 5 else 2 end;
