insert into services (trial, time_ns, service, received_bytes)
with recursive n(t) as (values (0) union all select t + 1 from n where t < 48)
select trial, t * 5e8, 'calm', t * 5000000 + t % 3 * 500 from trials, n
union all select trial, t * 5e8, 'loud', max(t - 16, 0) * 100000 from trials, n;
insert into flows (trial, "from", "to", bytes_received, end_ns) select trial, 2, 6, 4e7, 24e9 from trials;
insert into facts (trial, name, value) select trial, 'storm.' || column1 || '_datagrams', column2 from trials, (values ('offered', 20000), ('own', 1200), ('foreign', 0));
