insert into chains (trial, until, hops, frame_bytes, chain_ns_per_frame)
select trial, column1, column2, frame_bytes, 100 + column3 + iif(reach = 'routed' and column2 > 0, 70, 0)
from trials, (select 64 as frame_bytes union select 512 union select 1518),
  (values ('', 0, 0), ('s1', 1, 110), ('s3-s6', 2, 190), ('s2', 3, 280)) where workload = 'edges';
-- S1 takes 300 ns a frame, and 70 more where it routes.
insert into usage (trial, node, hops, frame_bytes, asked_per_s, wall_ns, sent_frames, received_frames, cpu_ns, process_cpu_ns, idle_ns)
select trial, column2, column1, 1518, per_s, 1e9, per_s, per_s, 1e6 + per_s * (300 + iif(reach = 'routed' and column1 = 1, 70, 0)), 1e6, 4e8
from trials, (select column1 * 1e9 / 8 / 1518 as per_s from (values (0), (1), (5))), (values (1, 's1'), (2, 's3-s6'), (3, 's2'))
where workload = 'held';
