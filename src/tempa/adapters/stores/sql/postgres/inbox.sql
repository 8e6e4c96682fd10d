-- The inbox, set by set: each parameter is an array, a column of the rows. In one order, so that two processes
-- that write some of the same rows do not wait for each other.

-- name: insert_calls(id, source, raw, received_at)!
-- The bytes that came, where something of them was new.
insert into inbox_call (id, source, raw, received_at)
select *
from unnest(cast(:id as text[]), cast(:source as text[]), cast(:raw as bytea[]), cast(:received_at as bigint[]));

-- name: insert_nonces(source, nonce, seen_at)
-- A row for each that was not used before.
insert into nonce (source, nonce, seen_at)
select source, nonce, seen_at
from unnest(cast(:source as text[]), cast(:nonce as text[]), cast(:seen_at as bigint[]))
    as fresh (source, nonce, seen_at)
order by source, nonce
on conflict (source, nonce) do nothing
returning source, nonce;

-- name: insert_signatures(source, signature, call_id, received_at, next_at)
-- Once means a unique index. What another source has led to a credit need not be looked up again.
insert into inbox (source, signature, call_id, received_at, next_at, state, settled_at)
select
    fresh.source, fresh.signature, fresh.call_id, fresh.received_at, fresh.next_at,
    case when known.number is null then 'pending' else 'credited' end,
    case when known.number is not null then fresh.received_at end
from unnest(
    cast(:source as text[]), cast(:signature as text[]), cast(:call_id as text[]), cast(:received_at as bigint[]),
    cast(:next_at as bigint[])
) with ordinality as fresh (source, signature, call_id, received_at, next_at, place)
left join lateral (
    select other.number
    from inbox as other
    where other.signature = fresh.signature and other.state || '' = 'credited'
    limit 1
) as known on true
order by fresh.source, fresh.signature, fresh.place
on conflict (source, signature) do nothing
returning call_id;

-- name: claim_inbox(now, lease_until, limit)
-- The signatures that have waited longest, with all that sources told of each. What another claim takes at this
-- moment is passed over.
with due as (
    select number, signature
    from inbox
    where state = 'pending' and next_at <= :now
    order by next_at, number
    limit :limit
    for update skip locked
)
update inbox
set leased = 1, next_at = :lease_until
where inbox.signature in (select signature from due)
    and inbox.state || '' = 'pending'
    and inbox.next_at <= :now
returning signature, received_at, attempts;

-- name: settle_inbox(signature, state, reason, spent, next_at, settled_at)!
-- Of all sources at once: the transaction is the same. What is settled already stays as it is.
with ending as (
    select inbox.number, ending.*
    from unnest(
        cast(:signature as text[]), cast(:state as text[]), cast(:reason as text[]), cast(:spent as integer[]),
        cast(:next_at as bigint[]), cast(:settled_at as bigint[])
    ) as ending (signature, state, reason, spent, next_at, settled_at)
    join inbox on inbox.signature = ending.signature and inbox.state || '' = 'pending'
    order by inbox.number
    for update of inbox
)
update inbox
set state = ending.state,
    reason = ending.reason,
    attempts = inbox.attempts + ending.spent,
    leased = 0,
    next_at = coalesce(ending.next_at, inbox.next_at),
    settled_at = ending.settled_at
from ending
where inbox.number = ending.number and inbox.state || '' = 'pending';
