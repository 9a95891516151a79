insert into flows (trial, "from", "to", bytes_asked, bytes_received, end_ns)
select trial, column1, column2, 1e8, 1e8, case rule when 'kept' then 3e9 when 'loss' then 2e9 else 29e8 end + repetition
from trials, (values (0, 6), (1, 14), (4, 10), (8, 15), (9, 2), (12, 7));
