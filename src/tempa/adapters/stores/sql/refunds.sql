-- Refunds: money in suspense that is sent back. Behind the ledger's lock, but for note_sent.

-- name: insert_refund(id, receipt_number, anomaly_id, quote_id, amount, destination, note, now)!
-- A trigger refuses more than came in and was not given.
insert into refund (id, receipt_number, anomaly_id, quote_id, amount, destination, note, requested_at)
values (:id, :receipt_number, :anomaly_id, :quote_id, :amount, :destination, :note, :now);

-- name: refund(refund_id)^
-- One, with what was paid.
select refund.*, receipt.cluster, receipt.signature, receipt.slot, receipt.asset, receipt.account
from refund
join receipt on receipt.number = refund.receipt_number
where refund.id = :refund_id;

-- name: refunds_open(after, limit)
-- Those that something has to be done about, oldest first; ids are in the order of time.
select refund.*, receipt.cluster, receipt.signature, receipt.slot, receipt.asset, receipt.account
from refund
join receipt on receipt.number = refund.receipt_number
where refund.ended_at is null and refund.id > :after
order by refund.id
limit :limit;

-- name: refunds(before, limit)
-- All of them, newest first.
select refund.*, receipt.cluster, receipt.signature, receipt.slot, receipt.asset, receipt.account
from refund
join receipt on receipt.number = refund.receipt_number
where cast(:before as text) is null or refund.number < (
    select edge.number from refund as edge where edge.id = :before
)
order by refund.number desc
limit :limit;

-- name: signings_of(refund_numbers)
-- What was signed for these, in order.
select *
from refund_signing
where refund_number in (select cast(value as bigint) from json_each(cast(:refund_numbers as text)))
order by number;

-- name: insert_signing(refund_number, raw, signature, last_valid_height, now)!
-- A unique index refuses a second one that may land.
insert into refund_signing (refund_number, raw, signature, last_valid_height, signed_at)
values (:refund_number, :raw, :signature, :last_valid_height, :now);

-- name: note_sent(signature, now)!
-- The first time counts.
update refund_signing set sent_at = coalesce(sent_at, :now) where signature = :signature and ended_at is null;

-- name: end_signing(refund_number, signature, outcome, now)!
-- Once.
update refund_signing
set ended_at = :now, outcome = :outcome
where refund_number = :refund_number and signature = :signature and ended_at is null;

-- name: move_refund(refund_id, state, reason, ended_at)!
-- One that has ended stays ended.
update refund
set state = :state, reason = :reason, ended_at = :ended_at
where id = :refund_id and ended_at is null;

-- name: outflows_of(signature)
-- What left the treasury by a transaction.
select * from outflow where signature = :signature and kind = 'transfer' order by number;

-- name: refund_signatures(signatures)
-- Which of these are refunds: what they take out of the treasury is known.
select signature
from refund_signing
where signature in (select value from json_each(cast(:signatures as text)));
