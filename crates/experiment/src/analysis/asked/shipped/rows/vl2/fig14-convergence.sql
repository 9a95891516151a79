insert into directory (trial, kind, step, offered_per_s, wall_ns, sent, messages, answered) select trial, 'update', 1, 200, 8e9, 1600, 1600, 1600 from trials;
insert into latencies (trial, kind, step, latency_at_most_ns, requests) select trial, column1, 1, column2, 1600 from trials, (values ('update', 5e6), ('visible', 2e7));
