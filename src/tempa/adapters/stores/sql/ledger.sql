-- The ledger: what came in, to whom it was given, and the journal. It is only added to; triggers refuse all else.
-- Written in batches behind lock_ledger: sqlite/ledger.sql and postgres/ledger.sql.

-- name: last_entry()^
-- The end of the chain, which the next entry hangs on.
select number, hash from journal order by number desc limit 1;

-- name: receipts_of(signature)
-- All that one transaction paid.
select * from receipt where signature = :signature order by number;

-- name: receipts_after(after, limit)
-- All, in the order in which they were posted: for proofs and reconciliation.
select * from receipt where number > :after order by number limit :limit;

-- name: receipt(number)^
-- One.
select * from receipt where number = :number;

-- name: allocations_of(receipts)
-- To which quotes these receipts were given.
select allocation.*, quote.account, quote.gpu_instance_id
from allocation
join quote on quote.id = allocation.quote_id
where allocation.receipt_number in (select cast(value as bigint) from json_each(cast(:receipts as text)))
order by allocation.number;

-- name: allocations_after(account, after, limit)
-- A page of an account's ledger, or everybody's.
select
    allocation.number, allocation.quote_id, allocation.amount, allocation.seconds, allocation.expires_at,
    allocation.at, allocation.price_numerator, allocation.price_denominator, receipt.signature, receipt.asset,
    receipt.slot, receipt.block_time, receipt.payer, quote.account, quote.gpu_instance_id
from allocation
join receipt on receipt.number = allocation.receipt_number
join quote on quote.id = allocation.quote_id
where allocation.number > :after and (cast(:account as text) is null or quote.account = :account)
order by allocation.number
limit :limit;

-- name: entries_after(after, limit)
-- A piece of the chain.
select * from journal where number > :after order by number limit :limit;

-- name: entry_of(key)^
-- The entry of what happened.
select * from journal where key = :key;

-- name: postings_between(first, last)
-- The lines of these entries.
select * from posting where journal_number between :first and :last order by journal_number, line;

-- name: received(up_to)
-- What came into each account of the treasury up to a slot, in two limbs of ten digits: amounts may be beyond
-- 2**63.
select
    asset,
    account,
    cast(sum(cast(substr('00000000000000000000' || amount, length(amount) + 1, 10) as bigint)) as bigint) as high,
    cast(sum(cast(substr('00000000000000000000' || amount, length(amount) + 11, 10) as bigint)) as bigint) as low
from receipt
where cast(:up_to as bigint) is null or slot <= :up_to
group by asset, account
order by asset, account;

-- name: sent(up_to)
-- What left each, likewise.
select
    asset,
    account,
    cast(sum(cast(substr('00000000000000000000' || amount, length(amount) + 1, 10) as bigint)) as bigint) as high,
    cast(sum(cast(substr('00000000000000000000' || amount, length(amount) + 11, 10) as bigint)) as bigint) as low
from outflow
where cast(:up_to as bigint) is null or slot <= :up_to
group by asset, account
order by asset, account;

-- name: balances()
-- Of each account of the journal, likewise: debits less credits.
select
    account,
    asset,
    cast(sum(sign * cast(substr(padded, length(padded) - 19, 10) as bigint)) as bigint) as high,
    cast(sum(sign * cast(substr(padded, length(padded) - 9) as bigint)) as bigint) as low
from (
    select
        account,
        asset,
        case when amount like '-%' then -1 else 1 end as sign,
        '00000000000000000000' || ltrim(amount, '-') as padded
    from posting
) as line
group by account, asset
order by account, asset;

-- name: note_anomaly(id, key, reason, source, signature, detail, raw, call_id, asset, account, amount, receipt_number, quote_id, times, now)!
-- The same key is the same anomaly: it is counted, and open again.
insert into anomaly (
    id, key, reason, source, signature, detail, raw, call_id, asset, account, amount, receipt_number, quote_id,
    count, created_at, seen_at
)
values (
    :id, :key, :reason, :source, :signature, :detail, :raw, :call_id, :asset, :account, :amount, :receipt_number,
    :quote_id, :times, :now, :now
)
on conflict (key) do update
set reason = excluded.reason,
    detail = excluded.detail,
    raw = excluded.raw,
    call_id = coalesce(excluded.call_id, anomaly.call_id),
    amount = excluded.amount,
    count = anomaly.count + excluded.count,
    seen_at = excluded.seen_at,
    resolved_at = null,
    resolution = null;

-- name: clear_anomalies(keys, now)!
-- What a credit has settled.
update anomaly
set resolved_at = :now, resolution = 'credited'
where key in (select value from json_each(cast(:keys as text))) and resolved_at is null;

-- name: clear_anomaly(key, resolution, now)!
-- What was wrong is not any more.
update anomaly set resolved_at = :now, resolution = :resolution where key = :key and resolved_at is null;

-- name: anomaly(anomaly_id)^
-- With what came, where that was kept. By its call, or by the first call that told of the signature.
select
    anomaly.*, coalesce(anomaly.raw, inbox_call.raw) as kept,
    length(coalesce(anomaly.raw, inbox_call.raw)) as kept_bytes
from anomaly
left join inbox_call on inbox_call.id = coalesce(
    anomaly.call_id,
    (select told.call_id from inbox as told where told.signature = anomaly.signature order by told.number limit 1)
)
where anomaly.id = :anomaly_id;

-- name: open_anomalies(before, limit, raw_bytes)
-- Newest first, with the beginning of what came: a page of whole calls would be hundreds of megabytes.
select
    anomaly.*, substr(coalesce(anomaly.raw, inbox_call.raw), 1, :raw_bytes) as kept,
    length(coalesce(anomaly.raw, inbox_call.raw)) as kept_bytes
from anomaly
left join inbox_call on inbox_call.id = coalesce(
    anomaly.call_id,
    (select told.call_id from inbox as told where told.signature = anomaly.signature order by told.number limit 1)
)
where anomaly.resolved_at is null
    and (cast(:before as text) is null or anomaly.number < (
        select edge.number from anomaly as edge where edge.id = :before
    ))
order by anomaly.number desc
limit :limit;

-- name: anomalies_of(signature)
-- All that was ever noted of a transaction.
select anomaly.*, anomaly.raw as kept, length(anomaly.raw) as kept_bytes
from anomaly
where signature = :signature
order by number;

-- name: resolve_anomaly(anomaly_id, resolution, now)!
-- A person has seen to it.
update anomaly set resolved_at = :now, resolution = :resolution where id = :anomaly_id and resolved_at is null;

-- name: anomaly_counts()
-- What is open, by reason.
select reason, count(*) as entries from anomaly where resolved_at is null group by reason order by reason;
