insert into flow_sizes (trial, bytes_at_most, flows, bytes) select trial, 1000, 1, 1000 from trials;
insert into concurrency (trial, flows, server_s) select trial, column1, column2 from trials, (values (10, 900), (85, 100));
insert into facts (trial, name, value) select trial, 'log.open_s', 17500 from trials;
