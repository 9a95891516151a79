insert into directory (trial, kind, step, offered_per_s, wall_ns, sent, messages, answered, longest_gap_ns)
select trial, 'update', column1, column2, 1e9, column2, column2, column2, 1e6 from trials, (values (1, 4000), (2, 12000), (3, 17000), (4, 30000)) where workload = 'ramp'
union all select trial, 'update', 1, 2000, 3e9, 6000, 6000, 6000, iif(workload = 'leader-kill', 3e8, 5e7) from trials where workload <> 'ramp';
insert into latencies (trial, kind, step, latency_at_most_ns, requests) select trial, kind, step, 2e7, sent from directory;
insert into events (trial, time_ns, kind, subject) select trial, 1e9, 'fault', 'directory1' from trials where workload <> 'ramp';
