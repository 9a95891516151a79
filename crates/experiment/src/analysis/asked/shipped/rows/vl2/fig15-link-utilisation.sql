insert into link_uses (trial, routing, node, peer, use_ratio)
select trial, column1, 'tor1', 'agg' || column2, column3 from trials, (values ('vlb', 1, 0.5), ('vlb', 2, 0.3), ('vlb-flows', 1, 0.52), ('vlb-flows', 2, 0.3),
  ('adaptive', 1, 0.5), ('adaptive', 2, 0.3), ('oblivious', 1, 0.5), ('oblivious', 2, 0.3));
insert into routed_matrices (trial, routing, time_ns, offered_bps, use_ratio)
select trial, column1, column2 * 3e11, 1e9, column3 from trials, (values ('vlb', 0, 0.5), ('vlb', 1, 0.4), ('vlb-flows', 0, 0.52), ('vlb-flows', 1, 0.41),
  ('adaptive', 0, 0.5), ('adaptive', 1, 0.4), ('oblivious', 0, 0.5), ('oblivious', 1, 0.4));
