-- The inbox, row by row: see postgres/inbox.sql.

-- name: insert_calls*!
-- The bytes that came, where something of them was new.
insert into inbox_call (id, source, raw, received_at) values (:id, :source, :raw, :received_at);

-- name: insert_nonce(source, nonce, seen_at)^
-- No row back: it was used before.
insert into nonce (source, nonce, seen_at) values (:source, :nonce, :seen_at)
on conflict (source, nonce) do nothing
returning source, nonce;

-- name: insert_signature(source, signature, call_id, received_at, next_at)^
-- Once means a unique index. What another source has led to a credit need not be looked up again.
insert into inbox (source, signature, call_id, received_at, next_at, state, settled_at)
select
    :source, :signature, :call_id, :received_at, :next_at,
    case when known.number is null then 'pending' else 'credited' end,
    case when known.number is not null then :received_at end
from (select 1)
left join inbox as known on known.number = (
    select min(other.number) from inbox as other where other.signature = :signature and other.state = 'credited'
)
where true
on conflict (source, signature) do nothing
returning call_id;

-- name: claim_inbox(now, lease_until, limit)
-- The signatures that have waited longest, with all that sources told of each.
update inbox
set leased = 1, next_at = :lease_until
where state = 'pending'
    and next_at <= :now
    and signature in (
        select due.signature
        from inbox as due
        where due.state = 'pending' and due.next_at <= :now
        order by due.next_at, due.number
        limit :limit
    )
returning signature, received_at, attempts;

-- name: settle_inbox*!
-- Of all sources at once: the transaction is the same. What is settled already stays as it is.
update inbox
set state = :state,
    reason = :reason,
    attempts = attempts + :spent,
    leased = 0,
    next_at = coalesce(:next_at, next_at),
    settled_at = :settled_at
where signature = :signature and state = 'pending';
