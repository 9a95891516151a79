insert into progress (trial, time_ns, received_bytes)
with recursive n(i) as (values (1) union all select i + 1 from n where i < 50)
select trial, i * 104000000, i * 12 * 38580 from trials, n;
insert into flows (trial, "from", "to", bytes_asked, bytes_received, end_ns)
with recursive n(i) as (values (0) union all select i + 1 from n where i < 3)
select trial, one.i, other.i, 1929000, 1929000, 52e8 from trials, n one, n other where one.i <> other.i;
