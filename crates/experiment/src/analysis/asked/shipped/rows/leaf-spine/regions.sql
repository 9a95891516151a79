insert into flows (trial, bytes_asked, bytes_received, start_ns, end_ns, ideal_ns)
with recursive n(i) as (values (0) union all select i + 1 from n where i < 99)
select trial, 2e7, 2e7, 2e7 + i * 1e5, 2e7 + i * 1e5 + case when network like '10g-%' then 13e6 when network like 'oq-%' then 10e6 else 102e5 end, 9e6
from trials, n;
insert into flows (trial, bytes_asked, bytes_received, start_ns, end_ns, class, request, ideal_ns)
with recursive n(i) as (values (0) union all select i + 1 from n where i < 99)
select trial, 2e6, 2e6, 2e7 + i * 1e5, 2e7 + i * 1e5 + iif(network like 'leaf-%', 8e6, 10e6), 'query', i, 5e6 from trials, n;
insert into queues (trial, node, interface, peer, class, bytes_at_most, time_ns)
select trial, column1, column2, column2, 'spine-leaf', column3, column4 from trials, (values
  ('leaf1', 'spine1', 1500, 800), ('leaf1', 'spine1', 9000, 200), ('spine1', 'leaf1', 1500, 780), ('spine1', 'leaf1', 9000, 220));
