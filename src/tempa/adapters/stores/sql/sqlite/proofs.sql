-- Receipts in the chain's order; texts in the order of their bytes, as SQLite has them.

-- name: first_receipts(up_to, limit)
-- The beginning of the chain's order.
select *
from receipt
where number <= :up_to
order by slot, coalesce(tx_index, -1), account, signature, asset
limit :limit;

-- name: receipts_by_place(slot, tx_index, account, signature, asset, up_to, limit)
-- A page of the chain's order, behind a place.
select *
from receipt
where (slot, coalesce(tx_index, -1), account, signature, asset) > (:slot, :tx_index, :account, :signature, :asset)
    and number <= :up_to
order by slot, coalesce(tx_index, -1), account, signature, asset
limit :limit;

-- name: lowest_receipt(after, up_to)^
-- Of those that were posted since, the first in the chain's order: what lies before it is as it was. The + keeps
-- SQLite from walking the whole order for it.
select *
from receipt
where number > :after and number <= :up_to
order by slot + 0, coalesce(tx_index, -1), account, signature, asset
limit 1;
