insert into progress (trial, time_ns, received_bytes)
with recursive n(i) as (values (1) union all select i + 1 from n where i < 200)
select trial, i * 235700000, i * 75 * 74 * 7040 from trials, n;
insert into flows (trial, "from", "to", bytes_asked, bytes_received, end_ns)
with recursive n(i) as (values (0) union all select i + 1 from n where i < 74)
select trial, one.i, other.i, 1408000, 1408000, 47140000000 from trials, n one, n other where one.i <> other.i;
insert into links (trial, time_ns, node, interface, peer, class, sent_bytes)
with recursive n(i) as (values (0) union all select i + 1 from n where i < 200),
  three(k) as (values (1), (2), (3))
select trial, i * 235700000, 'agg' || a.k, 'int' || b.k, 'int' || b.k, 'intermediate-aggregation', i * 1000000 from trials, n, three a, three b;
