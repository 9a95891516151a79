insert into directory (trial, kind, step, offered_per_s, wall_ns, sent, messages, answered, longest_gap_ns)
select trial, 'update', column1, column2, 1e9, column2, column2, column2, 1e6 from trials, (values (1, 4000), (2, 12000), (3, 17000), (4, 30000)) where workload = 'ramp'
union all select trial, 'update', 1, 12000, 1e9, 12000, 12000, 12000, 1e6 from trials where workload = 'storms'
union all select trial, 'update', 1, 2000, 3e9, 6000, 6000, 6000, iif(workload = 'leader-kill', 3e8, 5e7) from trials where workload like '%-kill'
union all select trial, 'lookup', 1, 5000, 3e9, 15000, 30000, 15000, 0 from trials where workload like '%-kill';
insert into latencies (trial, kind, step, latency_at_most_ns, requests) select trial, kind, step, 2e7, sent from directory;
insert into directory_ticks (trial, kind, step, time_ns, sent, answered, failed, worst_ns)
with recursive n(i) as (values (0) union all select i + 1 from n where i < 29)
select trial, column1, 1, (i + 3) * 100000000, 100, 100, 0, 2e7 from trials, n, (values ('lookup'), ('update')) where workload like '%-kill';
insert into events (trial, time_ns, kind, subject)
select trial, column1, column2, 'etcd of dir1' from trials, (values (8e8, 'fault'), (2e9, 'repair'), (21e8, 'ready')) where workload like '%-kill';
