insert into crossings (trial, kind, frame_bytes, load_percent, asked_per_s, wall_ns, sent_frames, received_frames, latency_p50_ns, latency_mean_ns,
  floor_p50_ns, floor_mean_ns)
select trial, 'given', frame_bytes, load, per_s, 1e8, 1e4, 1e4, column2, column2, 1000, 1000
from trials, (select column1 as frame_bytes from (values (64), (128), (256), (512), (1024), (1518))),
  (select column1 as load, column2 as per_s from (values (0, 1e5), (80, 1e5), (400, 1e5))),
  (values ('within', 3000), ('routed', 3100), ('router', 7300))
where reach = column1 and (load = 0) = (workload = 'bare');
