insert into links (trial, time_ns, node, interface, peer, class, sent_bytes)
with recursive n(i) as (values (0) union all select i + 1 from n where i < 6),
  up(k) as (values (1) union all select k + 1 from up where k < 23), below(k) as (values (1) union all select k + 1 from below where k < 46),
  wires(a, b) as (select 'agg' || below.k, 'int' || up.k from below, up)
select trial, i * 5000000, a, b, b, 'intermediate-aggregation', i * 1250000 from trials, n, wires
union all select trial, i * 5000000, b, a, a, 'intermediate-aggregation', i * 1250000 from trials, n, wires;
insert into progress (trial, time_ns, received_bytes)
with recursive n(i) as (values (0) union all select i + 1 from n where i < 6)
select trial, i * 5000000, i * 1322500000 from trials, n;
