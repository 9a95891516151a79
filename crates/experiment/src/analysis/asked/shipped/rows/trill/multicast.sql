insert into deliveries (trial, copies, receivers, groups, frame_bytes, asked_per_s, wall_ns, sender_frames, wanted_copies, received_copies, worst_ratio,
  duplicated_copies, strangers, stray_copies, link_down, hit_receivers, outage_ns)
select trial, iif(workload = 'ingress', 'ingress', 'tree'), receivers, 1, 512, 4000, 1e9, 4000 * iif(workload = 'ingress', receivers, 1), 4000 * receivers,
  4000 * receivers, 1, 0, 83 - receivers, iif(network = 'trill', 0, 4000 * (83 - receivers)), iif(workload = 'outage', 'leaf1-spine1', ''),
  iif(workload = 'outage', 13, 0), iif(workload = 'outage', iif(network = 'trill', 80e6, 30e9), 0)
from trials, (select column1 as receivers from (values (2), (16), (64))) where workload <> 'cpu' and (workload <> 'outage' or receivers = 16);
insert into deliveries (trial, copies, receivers, groups, frame_bytes, sender_frames, worst_ratio, link_down) select trial, 'tree', 64, 1, 512, 50, 1, ''
from trials where workload = 'cpu';
insert into link_copies (trial, copies, receivers, groups, sender_frames, node, peer, frames)
select trial, iif(workload = 'ingress', 'ingress', 'tree'), receivers, 1, 4000 * iif(workload = 'ingress', receivers, 1), column1, column2,
  4000 * iif(workload = 'ingress', receivers * 0.2, network <> 'trill' or receivers >= column3)
from trials, (select column1 as receivers from (values (2), (16), (64))),
  (values ('leaf1', 'spine1', 1), ('spine1', 'leaf2', 1), ('spine1', 'leaf3', 2), ('spine1', 'leaf4', 3), ('spine1', 'leaf5', 4), ('spine1', 'leaf6', 84))
where workload in ('tree', 'ingress');
insert into copy_costs (trial, way, receivers, frame_bytes, copies_per_frame, chain_ns_per_frame, chain_quartile_ns_per_frame, runs)
select trial, column1, 64, 512, column2, column3, column3, 20 from trials, (values ('none', 0, 600), ('unicast', 3, 960), ('tree', 69, 12000))
where workload = 'cpu';
