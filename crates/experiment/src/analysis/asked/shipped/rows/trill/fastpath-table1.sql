insert into chains (trial, until, hops, frame_bytes, chain_ns_per_frame, most_per_s)
select trial, column3, column2, frame_bytes, 100 + case overlay
    when 'rbridge' then column4 when 'rbridge-generic' then column5 when 'l2' then column6 else column7 end,
  case overlay when 'rbridge-generic' then 11e5 when 'bridge' then 5e5 else 25e5 end
from trials, (select 64 as frame_bytes union select 1518), (values
  (0, 0, '', 0, 0, 0, 0), (0, 1, 'leaf1', 110, 400, 60, 700), (0, 2, 'spine1', 190, 650, 120, 1320), (0, 3, 'leaf2', 300, 800, 200, 2000))
where workload = 'cost';
insert into crossings (trial, kind, frame_bytes, asked_per_s, wall_ns, sent_frames, received_frames, latency_p50_ns, floor_p50_ns)
select trial, 'given', column1, 1e5, 1e8, 1e4, 1e4, 1700, 800 from trials, (values (64), (1518)) where workload = 'latency';
