-- As the generator's table has them.
insert into flow_sizes (trial, bytes_at_most, flows, bytes)
select trial, column1, column2, column3 from trials, (values (10000, 8000, 1e7), (400000, 1000, 2e8), (1000000, 600, 4e8), (1000000000, 400, 1e11));
