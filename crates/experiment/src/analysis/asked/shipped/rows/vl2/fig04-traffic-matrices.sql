insert into flow_sizes (trial, bytes_at_most, flows, bytes) select trial, 1000, 1, 1000 from trials;
insert into fitting (trial, clusters, error_ratio, excess_ratio)
with recursive n(i) as (values (1) union all select i + 1 from n where i < 300)
select trial, i, iif(workload = 'volatile', 0.8 - i * 0.002, iif(i < 12, 0.5, 0.05)), 0.5 from trials, n;
-- A cluster returns after whatever time.
insert into matrices (trial, interval, bytes, pairs, cluster)
with recursive n(i) as (values (0) union all select i + 1 from n where i < 299)
select trial, i, 10, 3, iif(workload = 'volatile', (i * i + i * i * i / 7) % 37, i % 12) from trials, n;
