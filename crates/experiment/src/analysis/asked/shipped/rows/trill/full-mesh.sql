insert into progress (trial, time_ns, received_bytes)
with recursive n(i) as (values (0) union all select i + 1 from n where i < 200)
select trial, i * iif(paths = 'tree' and links = 'slow', 6730000, 673000), i * 55500000 from trials, n;
insert into flows (trial, "from", "to", bytes_asked, bytes_received, end_ns)
with recursive n(i) as (values (0) union all select i + 1 from n where i < 74)
select trial, one.i, other.i, 2000000, 2000000, 134600000 from trials, n one, n other where one.i <> other.i;
insert into links (trial, time_ns, node, interface, peer, class, sent_bytes)
with recursive leaf(i) as (values (1) union all select i + 1 from leaf where i < 75), n(i) as (values (0), (1))
select trial, n.i * 134600000, 'leaf' || a.i, 'leaf' || b.i, 'leaf' || b.i, 'leaf-leaf', n.i * 2000000
from trials, n, leaf a, leaf b where a.i <> b.i and (paths = 'trill' or a.i = 1 or b.i = 1);
