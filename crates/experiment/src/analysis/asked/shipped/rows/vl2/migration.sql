insert into migrations (trial, left_ns, arrived_ns, told_ns, last_stale_ns, stale_packets, lost_packets, silence_ns)
select trial, 20e8, 23e8, 23e8, 231e7, 300, 10, 4e8 from trials;
insert into progress (trial, time_ns, received_bytes) select trial, column1 * 1e9, column1 * 6e6 from trials, (values (1), (2), (3), (4), (5), (6));
