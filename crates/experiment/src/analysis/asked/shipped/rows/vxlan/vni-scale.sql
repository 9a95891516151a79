insert into segments (trial, store, segments, active_segments, setup_ns, memory_bytes, frame_bytes, chain_ns_per_frame, sent_frames, received_frames)
select trial, column1, segments, segments, column2 * segments, column3 * segments, 64, 1000 + column4 * segments, 1e5, 1e5
from trials, (select column1 as segments from (values (1), (10), (100), (1000), (5000))),
  (values ('kernel-devices', 1e6, 1e5, 0.1), ('kernel-metadata', 5e4, 1e4, 0.05), ('map', 2e4, 4e3, 0.005));
