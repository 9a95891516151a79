insert into crossings (trial, kind, frame_bytes, load_percent, asked_per_s, wall_ns, sent_frames, received_frames)
select trial, 'given', frame_bytes, load, load * 20000 / frame_bytes, 1e9, load * 20000 / frame_bytes,
  min(load * 20000 / frame_bytes, iif(overlay = 'rbridge', 7800000, 2000000) / frame_bytes)
from trials, (select column1 as frame_bytes from (values (64), (512), (1024), (1518))),
  (select column1 as load from (values (50), (100), (200), (300), (360), (400), (450)));
