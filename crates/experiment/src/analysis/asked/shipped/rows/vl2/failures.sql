insert into facts (trial, name, value) select trial, column1, column2 from trials, (values ('availability.whole', 0.5), ('availability.one_down.top', 0.45),
  ('availability.one_down.aggregation', 0.4));
insert into availability (trial, time_ns, lasts_ns, servers_ratio, demand_ratio, capacity_ratio)
select trial, 0, 18e12, 1, 1, 0.5 from trials
union all select trial, 18e12, 6e12, 1, 1, iif(network = 'vl2', 0.4, 0.3) from trials;
