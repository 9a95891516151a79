insert into cost (trial, cpu_ns, payload_bytes, wall_ns)
select trial, iif(overlay = 'vtep-tor', 80e7, 100e7) + repetition, 1e9, 12e8 from trials where workload = 'cost';
insert into flows (trial, bytes_received, end_ns) select trial, 1e8, 1e9 from trials where workload = 'goodput';
