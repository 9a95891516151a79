-- A look-up costs its two servers 5 us in all, an update the one that takes it 20 us and each other one 2 us; all have even shares.
insert into directory (trial, kind, step, offered_per_s, wall_ns, sent, messages, answered, longest_gap_ns, server_cpu_ns, busiest_server_cpu_ns, store_cpu_ns)
with tiers as (select trial, tier, workload, cast(substr(tier, 1, 1) as integer) as servers from trials)
select trial, 'lookup', 1, 32000, 2e9, 64000, 128000, 64000, 0, 64000 * 5000, 64000 * 5000 / servers, 0 from tiers where workload in ('lookups', 'mix')
union all
select trial, 'update', 1, 4000, 2e9, 8000, 8000, 8000, 5e7, 8000 * (18000 + 2000 * servers), 8000 * (18000 + 2000 * servers) / servers, 8000 * 30000
from tiers where workload in ('updates', 'mix')
union all
select trial, 'lookup', column1, column2, 1e9, column2, column2 * 2, column2, 0, column2 * 5000, column2 * 5000 / servers, 0
from tiers, (values (1, 50000), (2, 75000)) where workload = 'ramp';
insert into latencies (trial, kind, step, latency_at_most_ns, requests) select trial, kind, step, iif(kind = 'lookup', 4e5, 2e7), sent from directory;
