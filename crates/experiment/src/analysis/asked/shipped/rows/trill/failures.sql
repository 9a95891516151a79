insert into crossings (trial, kind, frame_bytes, sent_frames, received_frames, wall_ns, streams, hit_streams, outage_ns)
select trial, 'given', 128, 59000, 58800, 3e9, 64, 16, 45e6 from trials;
