insert into chains (trial, until, hops, frame_bytes, chain_ns_per_frame)
select trial, column1, column2, frame_bytes, 100 + column3 + iif(reach = 'routed' and column2 > 0, 70, 0)
from trials, (select 64 as frame_bytes union select 512 union select 1518),
  (values ('', 0, 0), ('s1', 1, 110), ('s3-s6', 2, 190), ('s2', 3, 280));
