insert into crossings (trial, kind, frame_bytes, sent_frames, received_frames, wall_ns, streams, hit_streams, outage_ns)
select trial, 'given', 128, 1100000, 1099000, 55e9, 64, 16, iif(overlay <> 'rbridge', 40e9, iif(loss = 'silent', 500e6, 120e6)) from trials;
