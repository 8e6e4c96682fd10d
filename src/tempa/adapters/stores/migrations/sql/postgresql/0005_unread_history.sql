-- What of an account's history below the cursor was not read yet: older than unread_before, which lies in
-- unread_slot, down to unread_floor. A row below the floor, or unread_known, has to come there.
alter table cursor add column unread_before text;
alter table cursor add column unread_slot bigint;
alter table cursor add column unread_floor bigint;
alter table cursor add column unread_known text;
