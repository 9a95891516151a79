insert into flows (trial, bytes_asked, bytes_received, start_ns, end_ns, ideal_ns)
with recursive n(i) as (values (0) union all select i + 1 from n where i < 199)
select trial, 2e7, 2e7, 1e8 + i * 1e6, 1e8 + i * 1e6 + case fabric when '10g' then 13e6 when 'oq' then 10e6 else 102e5 end, 9e6 from trials, n;
