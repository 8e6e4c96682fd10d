-- For proofs, for building the ledger anew, and for sending money back.

-- At which price it was taken: seconds for a base unit. Null: it is older than this column.
alter table allocation add column price_numerator text;
alter table allocation add column price_denominator text;

-- Receipts in the chain's order, over which a root is reckoned. A node may not tell the place in the block.
create index receipt_place on receipt (slot, coalesce(tx_index, -1), account, signature, asset);

-- What operators did to instances, and when: late payments are credited at the price of their time, and a ledger
-- that is built anew needs it. after_entry: behind which entry of the journal.
create table instance_act (
    number           integer primary key,
    gpu_instance_id  text    not null references gpu_instance (id),
    kind             text    not null check (kind in ('added', 'priced', 'suspended', 'resumed')),
    prices           text,
    after_entry      integer not null,
    at               integer not null,
    check ((prices is null) = (kind in ('suspended', 'resumed')))
) strict;

create index instance_act_prices on instance_act (gpu_instance_id, at, number) where prices is not null;

-- What is known of those that are older than this table: their present price counts from their first day.
insert into instance_act (gpu_instance_id, kind, prices, after_entry, at)
select id, 'added', prices, 0, created_at from gpu_instance order by created_at, id;

insert into instance_act (gpu_instance_id, kind, prices, after_entry, at)
select id, 'suspended', null, coalesce((select max(number) from journal), 0), suspended_at
from gpu_instance
where suspended_at is not null
order by suspended_at, id;

-- Money in suspense that is sent back. Its anomaly is resolved by it, so nobody is given it meanwhile; a refund that
-- fails opens the anomaly again.
create table refund (
    number          integer primary key,
    id              text    not null unique,
    receipt_number  integer not null references receipt (number),
    anomaly_id      text    not null,
    quote_id        text,
    amount          text    not null check (length(amount) between 1 and 20),
    destination     text    not null,
    note            text    not null,
    state           text    not null default 'requested'
        check (state in ('requested', 'signed', 'broadcast', 'expired', 'final', 'failed')),
    reason          text,
    requested_at    integer not null,
    ended_at        integer,
    check ((ended_at is not null) = (state in ('final', 'failed')))
) strict;

create index refund_receipt on refund (receipt_number);
create index refund_open on refund (number) where ended_at is null;

-- The bytes of each transaction that was signed for a refund, on disk before anybody else has them.
create table refund_signing (
    number             integer primary key,
    refund_number      integer not null references refund (number),
    raw                blob   not null,
    signature          text    not null unique,
    last_valid_height  integer not null,
    signed_at          integer not null,
    sent_at            integer,
    ended_at           integer,
    outcome            text    check (outcome in ('final', 'failed', 'expired')),
    check ((ended_at is null) = (outcome is null))
) strict;

-- Never two transactions that could both land.
create unique index refund_signing_live on refund_signing (refund_number) where ended_at is null;
create index refund_signing_refund on refund_signing (refund_number, number);

drop trigger allocation_is_of_what_came;

create trigger allocation_is_of_what_came before insert on allocation
begin
    select raise(abort, 'more was allocated than came in')
    from (
        select
            sum(cast(substr('00000000000000000000' || amount, length(amount) + 1, 10) as integer)) as high,
            sum(cast(substr('00000000000000000000' || amount, length(amount) + 11, 10) as integer)) as low
        from (
            select amount from allocation where receipt_number = new.receipt_number
            union all
            select amount from refund where receipt_number = new.receipt_number and state <> 'failed'
            union all
            select new.amount
        )
    ) as given
    join receipt on receipt.number = new.receipt_number
    where (given.high + given.low / 10000000000, given.low % 10000000000) > (
        cast(substr('00000000000000000000' || receipt.amount, length(receipt.amount) + 1, 10) as integer),
        cast(substr('00000000000000000000' || receipt.amount, length(receipt.amount) + 11, 10) as integer)
    );
end;

create trigger refund_is_of_what_came before insert on refund
begin
    select raise(abort, 'more is sent back than came in')
    from (
        select
            sum(cast(substr('00000000000000000000' || amount, length(amount) + 1, 10) as integer)) as high,
            sum(cast(substr('00000000000000000000' || amount, length(amount) + 11, 10) as integer)) as low
        from (
            select amount from allocation where receipt_number = new.receipt_number
            union all
            select amount from refund where receipt_number = new.receipt_number and state <> 'failed'
            union all
            select new.amount
        )
    ) as given
    join receipt on receipt.number = new.receipt_number
    where (given.high + given.low / 10000000000, given.low % 10000000000) > (
        cast(substr('00000000000000000000' || receipt.amount, length(receipt.amount) + 1, 10) as integer),
        cast(substr('00000000000000000000' || receipt.amount, length(receipt.amount) + 11, 10) as integer)
    );
end;

create trigger instance_act_is_never_changed before update on instance_act
begin
    select raise(abort, 'what was done is only added to');
end;

create trigger instance_act_is_never_deleted before delete on instance_act
begin
    select raise(abort, 'what was done is only added to');
end;
