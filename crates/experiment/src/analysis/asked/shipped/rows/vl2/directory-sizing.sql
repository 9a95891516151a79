insert into directory (trial, kind, step, offered_per_s, wall_ns, sent, messages, answered, server_cpu_ns)
select trial, 'lookup', column1, column2, 1e9, column2, column2, column2, column2 * 4000
from trials, (values (1, 8000), (2, 17000), (3, 50000), (4, 100000));
insert into latencies (trial, kind, step, latency_at_most_ns, requests)
select trial, 'lookup', column1, column3, column2 from trials, (values (1, 8000, 4e5), (2, 17000, 5e5), (3, 50000, 1e6), (4, 100000, 4e7));
