insert into cost (trial, cpu_ns, payload_bytes, wall_ns)
select trial, case overlay when 'routed' then 400e6 when 'vl2' then 420e6 else 500e6 end + repetition, 1e9, 12e8 from trials where workload like 'pinned-%';
insert into flows (trial, bytes_received, end_ns)
select trial, case overlay when 'routed' then 1000e6 when 'vl2' then 980e6 else 820e6 end + repetition, 1e9 from trials where workload like 'all-cores-%';
