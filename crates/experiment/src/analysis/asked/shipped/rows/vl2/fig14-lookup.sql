insert into directory (trial, kind, step, offered_per_s, wall_ns, sent, messages, answered, unanswered)
select trial, 'lookup', column1, column2, 1e9, column2, column2, column2, 0 from trials, (values (1, 5000), (2, 17000), (3, 33000), (4, 50000)) where workload = 'one-server'
union all select trial, 'lookup', column1, column2, 1e9, column2, column2, column2, 0 from trials, (values (1, 17000), (2, 50000)) where workload = 'one-server-storms'
union all select trial, 'lookup', 1, 32000, 3e9, 96000, 192000, 96000, 0 from trials where workload like 'mix-%' and workload <> 'mix-3-loss-once'
union all select trial, 'lookup', 1, 32000, 3e9, 96000, 192000, 92544, 3456 from trials where workload = 'mix-3-loss-once'
union all select trial, 'update', 1, 4000, 3e9, 12000, 12000, 12000, 0 from trials where workload like 'mix-%';
insert into latencies (trial, kind, step, latency_at_most_ns, requests)
select trial, kind, step, iif(kind = 'lookup', 4e5, 2e7), answered from directory;
insert into directory_ticks (trial, kind, step, time_ns, sent, answered, failed, worst_ns)
with recursive n(i) as (values (0) union all select i + 1 from n where i < 29)
select trial, column1, 1, (i + 3) * 100000000, 100, 100, 0, 2e7 from trials, n, (values ('lookup'), ('update')) where workload = 'mix-3-kill';
insert into events (trial, time_ns, kind, subject)
select trial, column1, column2, 'directory of dir3' from trials, (values (8e8, 'fault'), (2e9, 'repair'), (21e8, 'ready')) where workload = 'mix-3-kill';
