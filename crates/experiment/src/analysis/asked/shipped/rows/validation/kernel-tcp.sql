insert into flows (trial, "from", bytes_asked, bytes_received, start_ns, end_ns)
with recursive n(i) as (values (0) union all select i + 1 from n where i < 7)
select trial, i, 8e6, 8e6, i * 5e7, i * 5e7 + iif(engine = 'sim', 202e7, 200e7) from trials, n;
