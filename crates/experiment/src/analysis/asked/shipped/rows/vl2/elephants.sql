insert into flows (trial, "from", "to", bytes_asked, bytes_received, end_ns)
select trial, column1, column2, 36e6, 36e6, case balance when 'flow' then 6e9 when 'rehash' then 45e8 else 42e8 end + repetition
from trials, (values (0, 6), (1, 14), (4, 10), (8, 15), (9, 2), (12, 7));
