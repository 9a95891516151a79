insert into flows (trial, "from", "to", bytes_asked, bytes_received, end_ns, ideal_ns)
with recursive n(i) as (values (0) union all select i + 1 from n where i < 10)
select trial, i, i + 20, 1e7, 1e7, iif(uplinks = '20x10g', 1276, 1000), 1000 from trials, n;
