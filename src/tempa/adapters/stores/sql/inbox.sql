-- What was heard of payments. Written in batches: sqlite/inbox.sql and postgres/inbox.sql.

-- name: free_inbox(now)!
-- The lookups that were under way died with the process before.
update inbox set leased = 0, next_at = :now where state || '' = 'pending' and leased = 1 and next_at > :now;

-- name: inbox_of(signature)
-- As each source told of it.
select * from inbox where signature = :signature order by number;

-- name: inbox_states(signatures)
-- How these stand, by any of their sources.
select distinct signature, state
from inbox
where signature in (select value from json_each(cast(:signatures as text)));

-- name: requeue_inbox(signature, now)!
-- A person asks to look again, whatever came of it before: beside a receipt there may be money that was not
-- credited, and what is in the ledger is not posted twice.
update inbox
set state = 'pending', reason = null, settled_at = null, next_at = :now, attempts = 0, leased = 0
where signature = :signature;

-- name: next_lookup()$
-- When the next signature is to be looked up; null: none is.
select next_at from inbox where state = 'pending' order by next_at, number limit 1;

-- name: pending_lookups()^
-- How many wait, and since when the one that waits longest.
select count(*) as entries, min(received_at) as oldest from inbox where state = 'pending';

-- name: forget_nonces(before, limit)!
-- What no window takes any more.
delete from nonce
where (source, nonce) in (
    select old.source, old.nonce from nonce as old where old.seen_at < :before order by old.seen_at limit :limit
);

-- name: cursor_of(address)^
-- How far an account's history was read.
select slot, signature, unread_before, unread_slot, unread_floor, unread_known from cursor where address = :address;

-- name: advance_cursor(address, slot, signature, unread_before, unread_slot, unread_floor, unread_known, now)!
-- It never goes back: of two sweeps the one that is further counts, or has less unread below the same slot.
insert into cursor (
    address, slot, signature, unread_before, unread_slot, unread_floor, unread_known, updated_at
)
values (
    :address, :slot, :signature, :unread_before, :unread_slot, :unread_floor, :unread_known, :now
)
on conflict (address) do update
set slot = excluded.slot,
    signature = excluded.signature,
    unread_before = excluded.unread_before,
    unread_slot = excluded.unread_slot,
    unread_floor = excluded.unread_floor,
    unread_known = excluded.unread_known,
    updated_at = excluded.updated_at
where cursor.slot < excluded.slot
    or (
        cursor.slot = excluded.slot
        and cursor.unread_slot is not null
        and (excluded.unread_slot is null or excluded.unread_slot <= cursor.unread_slot)
    );

-- name: missed_lookups(now, limit)
-- Those that no node showed, and that are not due: the furthest away first.
select signature
from inbox
where state = 'pending' and next_at > :now and reason = 'not_found_yet'
order by next_at desc, number desc
limit :limit;

-- name: recall_lookups(signatures, now)!
-- A node shows them now.
update inbox
set next_at = :now
where signature in (select value from json_each(cast(:signatures as text)))
    and state || '' = 'pending'
    and leased = 0
    and reason = 'not_found_yet'
    and next_at > :now;

-- name: lookups_between(source, since, until)$
-- Whether any waits that this source told of then. 1 or 0.
select count(*)
from (
    select 1
    from inbox
    where state = 'pending' and source = :source and received_at between :since and :until
    limit 1
) as waiting;
