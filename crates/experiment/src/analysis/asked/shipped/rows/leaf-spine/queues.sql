insert into queues (trial, node, interface, peer, class, bytes_at_most, time_ns)
select trial, column1, column2, column2, 'spine-leaf', column3, column4 from trials, (values
  ('leaf1', 'spine1', 1500, 800), ('leaf1', 'spine1', 9000, 200), ('spine1', 'leaf1', 1500, 780), ('spine1', 'leaf1', 9000, 220));
