-- The ledger, row by row: see postgres/ledger.sql.

-- name: insert_receipt(cluster, signature, asset, account, amount, slot, tx_index, block_time, payer, labels, evidence, posted_at)^
-- Once means a unique index: no row back, it was posted before.
insert into receipt (
    cluster, signature, asset, account, amount, slot, tx_index, block_time, payer, labels, evidence, posted_at
)
values (
    :cluster, :signature, :asset, :account, :amount, :slot, :tx_index, :block_time, :payer, :labels, :evidence,
    :posted_at
)
on conflict (cluster, signature, asset, account) do nothing
returning number, cluster, signature, asset, account;

-- name: insert_outflow(cluster, signature, asset, account, kind, amount, slot, tx_index, block_time, posted_at)^
-- Likewise.
insert into outflow (cluster, signature, asset, account, kind, amount, slot, tx_index, block_time, posted_at)
values (:cluster, :signature, :asset, :account, :kind, :amount, :slot, :tx_index, :block_time, :posted_at)
on conflict (cluster, signature, asset, account, kind) do nothing
returning cluster, signature, asset, account, kind;

-- name: insert_allocations*!
-- A trigger refuses more than came in.
insert into allocation (
    receipt_number, quote_id, amount, seconds, price_numerator, price_denominator, expires_at, at
)
values (
    :receipt_number, :quote_id, :amount, :seconds, :price_numerator, :price_denominator, :expires_at, :at
);

-- name: insert_postings*!
-- Before their entries, which seal them.
insert into posting (journal_number, line, account, asset, amount)
values (:journal_number, :line, :account, :asset, :amount);

-- name: insert_entries*!
-- A trigger refuses one whose postings do not sum to zero; unique (key) one that happened before.
insert into journal (number, kind, key, at, detail, previous_hash, hash)
values (:number, :kind, :key, :at, :detail, :previous_hash, :hash);

-- name: write_quotes*!
-- What was paid of them, as it was read behind the same lock.
update quote
set status = :status,
    legs = :legs,
    granted_seconds = :granted_seconds,
    seen_at = coalesce(seen_at, :now),
    final_at = coalesce(final_at, :now),
    final_slot = coalesce(final_slot, :slot),
    credited_at = case when :is_credited = 1 then :now else credited_at end,
    credited_slot = case when :is_credited = 1 then :slot else credited_slot end,
    signature = :signature,
    reason = :reason
where id = :id;
