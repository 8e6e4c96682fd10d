-- What a proof of credit is made of: the journal by its hashes. Receipts in the chain's
-- order stand in sqlite/proofs.sql and postgres/proofs.sql: texts are in the order of their bytes, which is named
-- differently.

-- name: ledger_ends()^
-- How far the ledger goes: numbers are given one posting after the other, so this is a view that stays.
select
    coalesce((select max(number) from receipt), 0) as receipt_number,
    coalesce((select number from journal order by number desc limit 1), 0) as entry_number;

-- name: entry_hashes(after, up_to, limit)
-- A piece of the chain, by its hashes alone.
select number, hash from journal where number > :after and number <= :up_to order by number limit :limit;

-- name: entries_by_key(keys)
-- The entries of what happened.
select * from journal where key in (select value from json_each(cast(:keys as text))) order by number;

-- name: postings_of(numbers)
-- Their lines.
select *
from posting
where journal_number in (select cast(value as bigint) from json_each(cast(:numbers as text)))
order by journal_number, line;

-- name: payments_of_quote(quote_id, after, limit)
-- What was given to a quote, in order. Older than the column, it was taken at the quote's price.
select
    allocation.number, allocation.receipt_number, allocation.amount, allocation.seconds,
    coalesce(allocation.price_numerator, quote.price_numerator) as price_numerator,
    coalesce(allocation.price_denominator, quote.price_denominator) as price_denominator
from allocation
join quote on quote.id = allocation.quote_id
where allocation.quote_id = :quote_id and allocation.number > :after
order by allocation.number
limit :limit;
