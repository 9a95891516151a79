insert into flows (trial, bytes_asked, bytes_received, start_ns, end_ns, class, request, ideal_ns)
with recursive n(i) as (values (0) union all select i + 1 from n where i < 199)
select trial, 2e6, 2e6, i * 1e6, i * 1e6 + case buffers when 'leaf' then 8e6 when 'both' then 8e6 when 'spine' then 10e6 else 12e6 end, 'query', i, 5e6 from trials, n;
