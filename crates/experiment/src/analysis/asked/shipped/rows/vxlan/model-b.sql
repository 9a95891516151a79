insert into chains (trial, until, hops, frame_bytes, chain_ns_per_frame)
select trial, '', column1, frame_bytes, 2000 + case overlay when 'bridge' then column2 when 'kernel-vxlan-tor' then column3
  when 'l2-tc' then column4 else column5 end
from trials, (select column1 as frame_bytes from (values (128), (256), (512), (1024), (1450), (1518))),
  (values (0, 0, 0, 0, 0), (1, 600, 1200, 300, 450), (2, 700, 1300, 400, 550), (3, 1300, 2500, 700, 1000), (4, 2800, 4000, 2200, 2500))
where workload = 'cost';
insert into crossings (trial, kind, frame_bytes, asked_per_s, wall_ns, sent_frames, received_frames)
select trial, 'search', column1, 5e5, 4e7, 2e4, 2e4 from trials, (values (128), (256), (512), (1024), (1450)) where workload = 'rates'
union all select trial, 'given', 1450, 1e5, 6e7, 6000, 6000 from trials where workload = 'latency'
union all select trial, 'send', column1, 0, 12e7, 6e4, 5e4 from trials, (values (1450), (1518)) where workload = 'pairs';
