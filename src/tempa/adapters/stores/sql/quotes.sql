-- Quotes. What was paid of one is written with the ledger (ledger.sql), behind its lock.

-- name: insert_quote(id, account, gpu_instance_id, asset, decimals, treasury, seconds, amount, price_numerator, price_denominator, reference, created_at, expires_at)!
-- unique (reference): one label is one quote's for good.
insert into quote (
    id, account, gpu_instance_id, asset, decimals, treasury, seconds, amount, price_numerator, price_denominator,
    reference, created_at, expires_at
)
values (
    :id, :account, :gpu_instance_id, :asset, :decimals, :treasury, :seconds, :amount, :price_numerator,
    :price_denominator, :reference, :created_at, :expires_at
);

-- name: quote_of_account(account, quote_id)^
-- One of the account's.
select * from quote where id = :quote_id and account = :account;

-- name: list_quotes(account, before, limit)
-- Newest first. Ids of quotes all have one prefix: their order is that of time.
select *
from quote
where account = :account
    and (cast(:before as text) is null or number < (select edge.number from quote as edge where edge.id = :before))
order by number desc
limit :limit;

-- name: quotes_of_transaction(account, signature)
-- An account has few: its index is enough.
select * from quote where account = :account and signature = :signature order by number;

-- name: watched_quotes(after_at, after_number, limit)
-- Those whose references are looked for on the chain still, in the order of their end.
select *
from quote
where (expires_at, number) > (:after_at, :after_number)
order by expires_at, number
limit :limit;

-- name: quotes_named(names, ids)
-- Those that payments name by reference or memo, with what their instances cost now.
select quote.*, gpu_instance.prices
from quote
join gpu_instance on gpu_instance.id = quote.gpu_instance_id
where quote.number in (
    select named.number
    from quote as named
    where named.reference in (select value from json_each(cast(:names as text)))
    union
    select noted.number from quote as noted where noted.id in (select value from json_each(cast(:ids as text)))
)
order by quote.number;

-- name: note_seen(name, quote_id, slot, signature, now)!
-- A payment was heard of, by the quote's reference or its memo. What is final or booked already says more.
update quote
set status = 'seen', seen_at = :now, seen_slot = :slot, signature = :signature
where number in (
        select named.number from quote as named where named.reference = :name
        union
        select noted.number from quote as noted where noted.id = :quote_id
    )
    and status = 'open'
    and not exists (select 1 from receipt where receipt.signature = :signature);

-- name: note_final(name, quote_id, slot, signature, now)!
-- It is final. The time at which it was first heard of stays.
update quote
set status = 'final',
    seen_at = coalesce(seen_at, :now),
    seen_slot = coalesce(seen_slot, :slot),
    final_at = :now,
    final_slot = :slot,
    signature = :signature
where number in (
        select named.number from quote as named where named.reference = :name
        union
        select noted.number from quote as noted where noted.id = :quote_id
    )
    and status in ('open', 'seen')
    and not exists (select 1 from receipt where receipt.signature = :signature);

-- name: waiting_for(quote_id, reference)^
-- The latest money in suspense that was meant for a quote, or that names it among others. A person waits for it.
select anomaly.reason, anomaly.signature
from anomaly
join receipt on receipt.number = anomaly.receipt_number
where anomaly.resolved_at is null
    and (
        anomaly.quote_id = :quote_id
        or (
            anomaly.quote_id is null
            and (
                receipt.labels like '%' || cast(:reference as text) || '%'
                or receipt.labels like '%' || cast(:quote_id as text) || '%'
            )
        )
    )
order by anomaly.number desc
limit 1;

-- name: hold_quote(quote_id, reason, signature)!
-- Other money waits for it still.
update quote set reason = :reason, signature = :signature where id = :quote_id;

-- name: reopen_quote(quote_id, status)!
-- What was heard of a payment was of money that went elsewhere.
update quote
set status = :status,
    reason = null,
    signature = null,
    seen_at = case when credited_at is null then null else seen_at end,
    seen_slot = case when credited_at is null then null else seen_slot end,
    final_at = case when credited_at is null then null else final_at end,
    final_slot = case when credited_at is null then null else final_slot end
where id = :quote_id;
