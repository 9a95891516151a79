insert into crossings (trial, kind, frame_bytes, crossing_percent, asked_per_s, wall_ns, sent_frames, received_frames, latency_mean_ns,
  latency_p50_ns, floor_mean_ns, quiet)
select trial, 'given', 512, column1, 1e5, 6e7, 6000, 6000, 1000 + column1 * iif(reach = 'router', 12, 0.5) + repetition, 1000, 200, 1
from trials, (values (0), (10), (25), (50), (75), (100));
insert into chains (trial, hops, crossing_percent, frame_bytes, chain_ns_per_frame)
select trial, hops, column1, 512, 100 + hops * 100 from trials, (select 0 as hops union select 3), (values (0), (10), (25), (50), (75), (100));
