insert into links (trial, time_ns, node, interface, peer, class, sent_bytes)
with recursive n(i) as (values (0) union all select i + 1 from n where i < 204),
  three(k) as (values (1), (2), (3))
select trial, i * 500000000, 'agg' || a.k, 'int' || b.k, 'int' || b.k, 'intermediate-aggregation', i * 1000000 from trials, n, three a, three b;
insert into progress (trial, time_ns, received_bytes) select trial, 102e9, 1e9 from trials;
