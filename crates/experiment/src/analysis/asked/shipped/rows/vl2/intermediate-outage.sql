-- A quarter less while an Intermediate is down.
insert into progress (trial, time_ns, received_bytes)
with recursive n(i) as (values (1) union all select i + 1 from n where i < 700)
select trial, i * 200000000, 1e8 * i / 5.0 - 25e6 * (select sum(max(min(i / 5.0 - column1, 12), 0)) from (values (12), (36), (60), (84), (108))) from trials, n;
insert into events (trial, time_ns, kind, subject)
select trial, column2 * 1e9, 'fault', column1 from trials, (values ('int1', 12), ('int2', 36), ('int3', 60), ('int1', 84), ('int2', 108))
union all select trial, column2 * 1e9, 'repair', column1 from trials, (values ('int1', 24), ('int2', 48), ('int3', 72), ('int1', 96), ('int2', 120));
