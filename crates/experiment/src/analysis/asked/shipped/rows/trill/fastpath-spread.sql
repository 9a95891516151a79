insert into chains (trial, until, hops, frame_bytes, most_per_s) select trial, 'spine1', 2, column1, 2e6 from trials, (values (64), (1518));
insert into facts (trial, name, value)
select trial, printf('transit.%d.cpu.%d', column1, column2), iif(column2 = 0, 505, 495) from trials, (values (64, 0), (64, 1), (1518, 0), (1518, 1));
