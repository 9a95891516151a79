insert into services (trial, time_ns, service, received_bytes)
with recursive n(t) as (values (0) union all select t + 1 from n where t < 48)
select trial, t * 1e9, 'one', t * 20000000 + t % 3 * 2000 from trials, n
union all select trial, t * 1e9, 'two', max(t - 20, 0) * 1000000 from trials, n;
insert into flows (trial, "from", "to", bytes_received, end_ns)
select trial, column1, column2, 4e7, column3 from trials, (values (0, 10, 48e9), (5, 15, 47e9));
