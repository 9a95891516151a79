insert into chains (trial, until, hops, frame_bytes, chain_ns_per_frame)
select trial, column2, column1, frame_bytes, 100 + column1 * case overlay when 'bridge' then 600 when 'kernel-vxlan-tor' then 1000
  when 'l2-tc' then 200 when 'vtep-tor' then 300 when 'l2' then 60 else 120 end + repetition
from trials, (select column1 as frame_bytes from (values (64), (128), (256), (512), (1024), (1450))),
  (values (0, ''), (1, 'leaf1'), (2, 'spine1'), (3, 'leaf2'));
