insert into deliveries (trial, copies, receivers, groups, frame_bytes, asked_per_s, wall_ns, sender_frames, wanted_copies, received_copies, worst_ratio,
  duplicated_copies, strangers, stray_copies, link_down, hit_receivers, outage_ns)
select trial, 'tree', 16, iif(workload = 'many', 256, 64), 512, 4000, 1e9, 4000, 64000, 64000, 1, 0, 7, 0, iif(workload = 'outage', 'leaf1-spine1', ''),
  iif(workload = 'outage', 12, 0), iif(workload = 'outage', 80e6, 0)
from trials;
insert into link_copies (trial, copies, receivers, groups, sender_frames, node, peer, frames)
select trial, 'tree', 16, iif(workload = 'many', 256, 64), 4000, iif(edge = 1, 'leaf1', 'spine' || spine), iif(edge = 1, 'spine' || spine, 'leaf' || edge),
  iif(spine <= trees and edge < 6, 4000.0 / trees, 0)
from (select trial, workload, iif(network = 'one', 1, iif(network = 'two', 2, 4)) as trees from trials where workload <> 'outage'),
  (select column1 as spine from (values (1), (2), (3), (4))), (select column1 as edge from (values (1), (2), (3), (4), (5), (6)));
