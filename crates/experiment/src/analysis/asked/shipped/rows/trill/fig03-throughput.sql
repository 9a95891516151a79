-- One line takes 0.95 of 0.8 of a line in bits of layer 2 at 64 bytes.
insert into crossings (trial, kind, frame_bytes, load_percent, asked_per_s, wall_ns, sent_frames, received_frames)
select trial, 'given', column1, 80, 1e4, 10e9, 1e5, iif(overlay = 'bridge' and workload = 'layer2' and column1 = 64, 95e3, 1e5)
from trials, (values (64), (128), (256), (512), (1024), (1518));
