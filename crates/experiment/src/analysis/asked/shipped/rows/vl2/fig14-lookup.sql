insert into directory (trial, kind, step, offered_per_s, wall_ns, sent, messages, answered)
select trial, 'lookup', column1, column2, 1e9, column2, column2, column2 from trials, (values (1, 5000), (2, 17000), (3, 33000), (4, 50000)) where workload = 'one-server'
union all select trial, 'lookup', 1, 32000, 3e9, 96000, 96000, 96000 from trials where workload <> 'one-server'
union all select trial, 'update', 1, 4000, 3e9, 12000, 12000, 12000 from trials where workload like 'mix-%' and workload <> 'mix-3-loss';
insert into latencies (trial, kind, step, latency_at_most_ns, requests)
select trial, kind, step, iif(kind = 'lookup', 4e5, 2e7), sent from directory;
