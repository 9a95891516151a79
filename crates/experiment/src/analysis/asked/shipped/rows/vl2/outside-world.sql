insert into flows (trial, "from", "to", bytes_asked, bytes_received, end_ns) select trial, column1, column2, 1e4, 1e4, 1e9 from trials, (values (2, 0), (1, 2));
insert into links (trial, time_ns, node, interface, peer, class, sent_bytes)
with recursive n(t) as (values (1) union all select t + 1 from n where t < 10)
select trial, t * 1e9, column1, column2, column2, 'internet-intermediate', t * column3 from trials, n,
  (values ('net', 'int1', 5100000), ('net', 'int2', 4900000), ('int1', 'net', 5000000), ('int2', 'net', 5000000));
insert into progress (trial, time_ns, received_bytes)
with recursive n(t) as (values (1) union all select t + 1 from n where t < 20) select trial, t * 5e8, t * 11e6 from trials, n;
insert into events (trial, time_ns, kind, subject) select trial, 8e9, 'fault', 'int1-net' from trials;
insert into gaps (trial, "from", "to", time_ns, lost, outage_ns) select trial, 2, 0, 8000000005, 6, 30e6 from trials;
