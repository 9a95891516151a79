insert into facts (trial, name, value) select trial, 'machine.core_mhz', 2500 from trials;
-- Half a million frames a second are carried, a million are not.
insert into crossings (trial, kind, frame_bytes, asked_per_s, wall_ns, sent_frames, received_frames)
select trial, 'search', frame_bytes, column1, 1e9, column1, min(column1, 6e5)
from trials, (select column1 as frame_bytes from (values (128), (256), (512), (1024), (1518))), (values (250000), (500000), (1000000))
where workload = 'benchmark';
insert into chains (trial, until, hops, frame_bytes, chain_ns_per_frame)
select trial, column2, column1, frame_bytes, 100 + column1 * 800
from trials, (select column1 as frame_bytes from (values (128), (256), (512), (1024), (1518))), (values (0, ''), (1, 'leaf1'), (2, 'vms'))
where workload = 'benchmark';
insert into memory (trial, frame_bytes, kernel_bytes, receiver_bytes)
select trial, column1, 1e8, 2e7 from trials, (values (0), (128), (256), (512), (1024), (1518)) where workload = 'benchmark';
-- Both servers carry a hundred thousand frames a second in half of their core's time.
insert into usage (trial, node, hops, frame_bytes, asked_per_s, wall_ns, sent_frames, received_frames, cpu_ns, process_cpu_ns, idle_ns,
  process_bytes, kernel_bytes)
select trial, 'leaf1', 1, column1, iif(column1 > 0, 1e5, 0), 1e9, iif(column1 > 0, 1e5, 0), iif(column1 > 0, 1e5, 0), iif(column1 > 0, 5e8, 1e7),
  iif(column1 > 0, 3e8, 1e6), iif(column1 > 0, 5e8, 99e7), 2e7, 1e8
from trials, (values (0), (128), (256), (512), (1024), (1518)) where workload <> 'benchmark';
