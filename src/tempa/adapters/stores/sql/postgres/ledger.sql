-- The ledger, set by set: each parameter is an array, a column of the rows. In the order given.

-- name: insert_receipts(cluster, signature, asset, account, amount, slot, tx_index, block_time, payer, labels, evidence, posted_at)
-- Once means a unique index: a row for each that was not posted before.
insert into receipt (
    cluster, signature, asset, account, amount, slot, tx_index, block_time, payer, labels, evidence, posted_at
)
select
    cluster, signature, asset, account, amount, slot, tx_index, block_time, payer, labels, evidence, posted_at
from unnest(
    cast(:cluster as text[]), cast(:signature as text[]), cast(:asset as text[]), cast(:account as text[]),
    cast(:amount as text[]), cast(:slot as bigint[]), cast(:tx_index as integer[]), cast(:block_time as bigint[]),
    cast(:payer as text[]), cast(:labels as text[]), cast(:evidence as text[]), cast(:posted_at as bigint[])
) with ordinality as receipt (
    cluster, signature, asset, account, amount, slot, tx_index, block_time, payer, labels, evidence, posted_at, place
)
order by place
on conflict (cluster, signature, asset, account) do nothing
returning number, cluster, signature, asset, account;

-- name: insert_outflows(cluster, signature, asset, account, kind, amount, slot, tx_index, block_time, posted_at)
-- Likewise.
insert into outflow (cluster, signature, asset, account, kind, amount, slot, tx_index, block_time, posted_at)
select cluster, signature, asset, account, kind, amount, slot, tx_index, block_time, posted_at
from unnest(
    cast(:cluster as text[]), cast(:signature as text[]), cast(:asset as text[]), cast(:account as text[]),
    cast(:kind as text[]), cast(:amount as text[]), cast(:slot as bigint[]), cast(:tx_index as integer[]),
    cast(:block_time as bigint[]), cast(:posted_at as bigint[])
) with ordinality as outflow (
    cluster, signature, asset, account, kind, amount, slot, tx_index, block_time, posted_at, place
)
order by place
on conflict (cluster, signature, asset, account, kind) do nothing
returning cluster, signature, asset, account, kind;

-- name: insert_allocations(receipt_number, quote_id, amount, seconds, price_numerator, price_denominator, expires_at, at)!
-- A trigger refuses more than came in.
insert into allocation (
    receipt_number, quote_id, amount, seconds, price_numerator, price_denominator, expires_at, at
)
select receipt_number, quote_id, amount, seconds, price_numerator, price_denominator, expires_at, at
from unnest(
    cast(:receipt_number as bigint[]), cast(:quote_id as text[]), cast(:amount as text[]),
    cast(:seconds as bigint[]), cast(:price_numerator as text[]), cast(:price_denominator as text[]),
    cast(:expires_at as bigint[]), cast(:at as bigint[])
) with ordinality as allocation (
    receipt_number, quote_id, amount, seconds, price_numerator, price_denominator, expires_at, at, place
)
order by place;

-- name: insert_postings(journal_number, line, account, asset, amount)!
-- Before their entries, which seal them.
insert into posting (journal_number, line, account, asset, amount)
select *
from unnest(
    cast(:journal_number as bigint[]), cast(:line as integer[]), cast(:account as text[]), cast(:asset as text[]),
    cast(:amount as text[])
);

-- name: insert_entries(number, kind, key, at, detail, previous_hash, hash)!
-- A trigger refuses one whose postings do not sum to zero; unique (key) one that happened before.
insert into journal (number, kind, key, at, detail, previous_hash, hash)
select *
from unnest(
    cast(:number as bigint[]), cast(:kind as text[]), cast(:key as text[]), cast(:at as bigint[]),
    cast(:detail as text[]), cast(:previous_hash as text[]), cast(:hash as text[])
);

-- name: write_quotes(id, status, legs, granted_seconds, now, slot, is_credited, signature, reason)!
-- What was paid of them, as it was read behind the same lock.
update quote
set status = paid.status,
    legs = paid.legs,
    granted_seconds = paid.granted_seconds,
    seen_at = coalesce(quote.seen_at, paid.now),
    final_at = coalesce(quote.final_at, paid.now),
    final_slot = coalesce(quote.final_slot, paid.slot),
    credited_at = case when paid.is_credited = 1 then paid.now else quote.credited_at end,
    credited_slot = case when paid.is_credited = 1 then paid.slot else quote.credited_slot end,
    signature = paid.signature,
    reason = paid.reason
from unnest(
    cast(:id as text[]), cast(:status as text[]), cast(:legs as text[]), cast(:granted_seconds as bigint[]),
    cast(:now as bigint[]), cast(:slot as bigint[]), cast(:is_credited as integer[]), cast(:signature as text[]),
    cast(:reason as text[])
) as paid (id, status, legs, granted_seconds, now, slot, is_credited, signature, reason)
where quote.id = paid.id;
