insert into path_shares (trial, frame_bytes, switch, frames)
select trial, frame_bytes, column1, iif(overlay = 'rbridge', column2, column3) from trials, (select 64 as frame_bytes union select 1518),
  (values ('spine1', 1020, 4000), ('spine2', 980, 0), ('spine3', 1050, 0), ('spine4', 950, 0));
insert into crossings (trial, kind, frame_bytes, sent_frames, received_frames) select trial, 'given', 64, 8000, 8000 from trials;
