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
    and status = 'open';

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
    and status in ('open', 'seen');
