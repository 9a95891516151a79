insert into facts (trial, name, value) select trial, 'machine.core_mhz', 2500 from trials;
-- Half a million frames a second are carried, a million are not.
insert into crossings (trial, kind, frame_bytes, asked_per_s, wall_ns, sent_frames, received_frames)
select trial, 'search', frame_bytes, column1, 1e9, column1, min(column1, 6e5)
from trials, (select column1 as frame_bytes from (values (128), (256), (512), (1024), (1518))), (values (250000), (500000), (1000000));
insert into chains (trial, until, hops, frame_bytes, chain_ns_per_frame)
select trial, column2, column1, frame_bytes, 100 + column1 * 800
from trials, (select column1 as frame_bytes from (values (128), (256), (512), (1024), (1518))), (values (0, ''), (1, 'leaf1'), (2, 'vms'));
insert into memory (trial, frame_bytes, kernel_bytes, receiver_bytes)
select trial, column1, 1e8, 2e7 from trials, (values (0), (128), (256), (512), (1024), (1518));
