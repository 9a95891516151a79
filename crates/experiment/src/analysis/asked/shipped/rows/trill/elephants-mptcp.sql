-- Of two whole flows one shares a path in every other round.
insert into elephants (trial, split, round, elephant, connections, received_bytes, wall_ns)
with recursive rounds(round) as (values (0) union all select round + 1 from rounds where round < 20)
select trial, column1, round, column2, iif(column1 = 'tcp', 1, 8),
  iif(column1 <> 'tcp', 23e6, iif(column2 < 2 or round % 2, 12.5e6, 24.5e6)), 2e9
from trials, rounds, (values ('tcp', 0), ('tcp', 1), ('tcp', 2), ('tcp', 3), ('mptcp', 0), ('mptcp', 1), ('mptcp', 2), ('mptcp', 3));
