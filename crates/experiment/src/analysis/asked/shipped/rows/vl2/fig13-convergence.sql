-- Goodput is 0.95 of what the links of each phase can carry; a link is used a second after its repair.
insert into progress (trial, time_ns, received_bytes)
with recursive n(i) as (values (1) union all select i + 1 from n where i < 580),
  phases_of(from_s, to_s, mbps) as (values (0, 8, 600), (8, 12, 560), (12, 16, 480), (16, 20, 480), (20, 24, 400), (24, 28, 320), (28, 32, 240),
    (32, 36, 320), (36, 40, 400), (40, 44, 480), (44, 48, 560), (48, 58, 600))
select trial, i * 100000000, 
  cast((select sum(max(min(i / 10.0, to_s) - from_s, 0) * mbps) from phases_of) * 1e6 / 8 * 0.95 * 2920 / 3154 as integer) from trials, n;
insert into events (trial, time_ns, kind, subject)
select trial, column3 * 1e9, 'fault', column1 || '-' || column2 from trials, (values ('int1', 'agg1', 8), ('int1', 'agg2', 12), ('int1', 'agg3', 16),
  ('int2', 'agg1', 20), ('int2', 'agg2', 24), ('int2', 'agg3', 28))
union all
select trial, column3 * 1e9, 'repair', column1 || '-' || column2 from trials, (values ('int1', 'agg1', 32), ('int1', 'agg2', 36), ('int1', 'agg3', 40),
  ('int2', 'agg1', 44), ('int2', 'agg2', 48), ('int2', 'agg3', 52));
insert into links (trial, time_ns, node, interface, peer, class, sent_bytes)
with recursive n(i) as (values (0) union all select i + 1 from n where i < 580)
select trial, i * 100000000, column2, column1, column1, 'intermediate-aggregation', cast(8e6 * (min(i / 10.0, column3) + max(i / 10.0 - column3 - 25, 0)) as integer)
from trials, n, (values ('int1', 'agg1', 8), ('int1', 'agg2', 12), ('int1', 'agg3', 16), ('int2', 'agg1', 20), ('int2', 'agg2', 24), ('int2', 'agg3', 28));
insert into facts (trial, name, value) select trial, 'probes.flows', 30 from trials;
insert into gaps (trial, "from", "to", time_ns, lost, outage_ns)
select trial, 0, 1, column1 * 1000000, 1, column2 * 1000000 from trials, (values (8010, 20), (12010, 30), (16010, 40), (20100, 240), (24100, 250),
  (28100, 260));
