insert into path_shares (trial, frame_bytes, switch, frames, bytes)
select trial, column1, 'spine1', 1e4, 1e4 * (column1 - 4 + iif(overlay = 'rbridge', 24, 10)) from trials, (values (64), (1518)) where workload = 'bare';
insert into crossings (trial, kind, frame_bytes, asked_per_s, wall_ns, sent_frames, received_frames, latency_p50_ns)
select trial, 'given', column1, 1e5, 1e8, 1e4, 1e4, 1700 from trials, (values (64), (1518)) where workload = 'bare';
-- Lines of 44 or 30 bytes beside a frame, four of them.
insert into crossings (trial, kind, frame_bytes, load_percent, asked_per_s, wall_ns, sent_frames, received_frames, latency_p50_ns)
select trial, 'given', frame_bytes, load, load * 10000 / (frame_bytes + 44), 1e9, load * 10000 / (frame_bytes + 44),
  min(load * 10000 / (frame_bytes + 44), 4000000 / (frame_bytes + iif(overlay = 'rbridge', 44, 30))), iif(overlay = 'rbridge', 50000, 46000)
from trials, (select column1 as frame_bytes from (values (64), (128), (512), (1518))),
  (select column1 as load from (values (80), (300), (360), (400), (450))) where workload = 'links';
insert into chains (trial, until, hops, frame_bytes, chain_ns_per_frame)
select trial, column1, column2, frame_bytes, 100 + column3 from trials, (select 64 as frame_bytes union select 1518),
  (values ('', 0, 0), ('leaf1', 1, 110), ('spine1', 2, 190), ('leaf2', 3, 280)) where workload = 'cost';
