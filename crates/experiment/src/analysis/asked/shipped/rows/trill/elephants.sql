insert into flows (trial, "from", "to", bytes_asked, bytes_received, start_ns, end_ns, ideal_ns)
with recursive n(i) as (values (0) union all select i + 1 from n where i < 31)
select trial, i % 4, i % 4 + 4, 1e8, 1e8, 0, iif(i < 2, 165e6, 85e6), 80e6 from trials, n where workload = 'whole' and i < 4
union all
select trial, i % 4, i % 4 + 4, 125e5, 125e5, 0, 130e6, 10e6 from trials, n where workload = 'subflows';
