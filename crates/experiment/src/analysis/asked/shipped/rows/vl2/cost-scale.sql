insert into facts (trial, name, value) values (1, 'generator.servers.24-ports', 2880), (1, 'generator.servers.144-ports', 103680);
insert into networks (trial, design, servers, oversubscription, tors, ports, cables, switches_usd)
select 1, column1, 35000, column2, 1750, 7000, 7000, column3 from (values ('vl2', 1, 1e6), ('vl2', 23, 3e5), ('conventional', 1, 14e6),
  ('conventional-spare', 1, 28e6), ('conventional', 23, 4e6), ('conventional-spare', 23, 8e6));
