-- Settlement: the inbox, quotes and rentals, the ledger. Amounts are base units in decimal text: the chain's are
-- unsigned of 64 bits, beyond what an integer holds here. Sums of them are taken in two limbs of ten digits.

-- What a provider posted, kept while something of it was new. `id` is ours.
create table inbox_call (
    id           text    primary key,
    source       text    not null,
    raw          blob    not null,
    received_at  integer not null
) strict, without rowid;

-- What providers never use twice.
create table nonce (
    source   text    not null,
    nonce    text    not null,
    seen_at  integer not null,
    primary key (source, nonce)
) strict, without rowid;

create index nonce_seen on nonce (seen_at);

-- One row for a signature and a source, whoever posts it how often. next_at is when it may be looked up; while a
-- lookup is under way (leased) it is when that has failed.
create table inbox (
    number       integer primary key,
    source       text    not null,
    signature    text    not null,
    call_id      text    not null,
    state        text    not null default 'pending' check (state in ('pending', 'credited', 'terminal')),
    reason       text,
    attempts     integer not null default 0,
    leased       integer not null default 0 check (leased in (0, 1)),
    received_at  integer not null,
    next_at      integer not null,
    settled_at   integer,
    unique (source, signature),
    check ((state = 'pending') = (settled_at is null)),
    check (state <> 'terminal' or reason is not null)
) strict;

create index inbox_signature on inbox (signature);
create index inbox_due on inbox (next_at, number) where state = 'pending';

-- prices: what so many seconds cost, by asset. suspended_at: since when the operator lets nobody use it.
create table gpu_instance (
    id            text    primary key,
    name          text    not null,
    prices        text    not null,
    created_at    integer not null,
    suspended_at  integer
) strict, without rowid;

-- An account's time on an instance. expires_at is only ever moved on, by one relative statement (ledger.sql).
-- warned_for is the expiry that was warned of. Ended when the grace is over; what is paid then begins another.
create table rental (
    number           integer primary key,
    gpu_instance_id  text    not null references gpu_instance (id),
    account          text    not null,
    started_at       integer not null,
    expires_at       integer not null,
    seconds          integer not null check (seconds >= 0),
    in_grace         integer not null default 0 check (in_grace in (0, 1)),
    warned_for       integer,
    quote_id         text    not null,
    signature        text    not null,
    ended_at         integer
) strict;

-- One renter at a time, whatever two settlers believe.
create unique index rental_open on rental (gpu_instance_id) where ended_at is null;
create index rental_instance on rental (gpu_instance_id, number);
create index rental_expiry on rental (expires_at) where ended_at is null;

-- legs: how much was paid at which price; what it bought is reckoned from all of them together.
create table quote (
    number             integer primary key,
    id                 text    not null unique,
    account            text    not null,
    gpu_instance_id    text    not null references gpu_instance (id),
    asset              text    not null,
    decimals           integer not null,
    treasury           text    not null,
    seconds            integer not null,
    amount             text    not null,
    price_numerator    text    not null,
    price_denominator  text    not null,
    reference          text    not null unique,
    created_at         integer not null,
    expires_at         integer not null,
    status             text    not null default 'open'
        check (status in ('open', 'seen', 'final', 'credited', 'partial', 'late', 'suspense')),
    legs               text    not null default '[]',
    granted_seconds    integer not null default 0 check (granted_seconds >= 0),
    seen_at            integer,
    seen_slot          integer,
    final_at           integer,
    final_slot         integer,
    credited_at        integer,
    credited_slot      integer,
    signature          text,
    reason             text
) strict;

create index quote_account on quote (account, number);
create index quote_expiry on quote (expires_at, number);

-- What came in, as the chain shows it at finality; once by the unique key. Never changed: where its money is
-- stands in allocation, and what is not there waits in an anomaly.
create table receipt (
    number      integer primary key,
    cluster     text    not null,
    signature   text    not null,
    asset       text    not null,
    account     text    not null,
    amount      text    not null check (length(amount) between 1 and 20),
    slot        integer not null,
    tx_index    integer,
    block_time  integer,
    payer       text,
    labels      text    not null,
    evidence    text    not null,
    posted_at   integer not null,
    unique (cluster, signature, asset, account)
) strict;

create index receipt_signature on receipt (signature);

-- Which part of a receipt was given to which quote, and what it bought.
create table allocation (
    number          integer primary key,
    receipt_number  integer not null references receipt (number),
    quote_id        text    not null references quote (id),
    amount          text    not null check (length(amount) between 1 and 20),
    seconds         integer not null check (seconds >= 0),
    expires_at      integer,
    at              integer not null
) strict;

create index allocation_receipt on allocation (receipt_number);
create index allocation_quote on allocation (quote_id);

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
            select new.amount
        )
    ) as given
    join receipt on receipt.number = new.receipt_number
    where (given.high + given.low / 10000000000, given.low % 10000000000) > (
        cast(substr('00000000000000000000' || receipt.amount, length(receipt.amount) + 1, 10) as integer),
        cast(substr('00000000000000000000' || receipt.amount, length(receipt.amount) + 11, 10) as integer)
    );
end;

-- What left the treasury: receipts, strays and outflows together are what its accounts hold.
create table outflow (
    number      integer primary key,
    cluster     text    not null,
    signature   text    not null,
    asset       text    not null,
    account     text    not null,
    kind        text    not null check (kind in ('transfer', 'fee')),
    amount      text    not null check (length(amount) between 1 and 20),
    slot        integer not null,
    tx_index    integer,
    block_time  integer,
    posted_at   integer not null,
    unique (cluster, signature, asset, account, kind)
) strict;

-- Double entries in a chain of hashes. An entry's postings are written before it: it is its seal.
create table journal (
    number         integer primary key,
    kind           text    not null,
    key            text    not null unique,
    at             integer not null,
    detail         text    not null,
    previous_hash  text    not null unique,
    hash           text    not null unique
) strict;

create table posting (
    journal_number  integer not null references journal (number) deferrable initially deferred,
    line            integer not null,
    account         text    not null,
    asset           text    not null,
    amount          text    not null check (length(ltrim(amount, '-')) between 1 and 20),
    primary key (journal_number, line)
) strict, without rowid;

create index posting_account on posting (account, asset);

create trigger journal_is_balanced before insert on journal
begin
    select raise(abort, 'an entry has postings, and in each asset they sum to zero')
    where not exists (select 1 from posting where journal_number = new.number)
        or exists (
            select 1
            from (
                select
                    asset,
                    case when amount like '-%' then -1 else 1 end as sign,
                    '00000000000000000000' || ltrim(amount, '-') as padded
                from posting
                where journal_number = new.number
            )
            group by asset
            having sum(sign * cast(substr(padded, length(padded) - 9) as integer)) % 10000000000 <> 0
                or sum(sign * cast(substr(padded, length(padded) - 19, 10) as integer))
                    + sum(sign * cast(substr(padded, length(padded) - 9) as integer)) / 10000000000 <> 0
        );
end;

create trigger posting_is_before_its_seal before insert on posting
when exists (select 1 from journal where number = new.journal_number)
begin
    select raise(abort, 'nothing is added to an entry that was sealed');
end;

-- How far each account's history was read, for good.
create table cursor (
    address     text    primary key,
    slot        integer not null,
    signature   text,
    updated_at  integer not null
) strict, without rowid;

-- What a person has to look at. The same key is the same anomaly: counted, and open again.
create table anomaly (
    number          integer primary key,
    id              text    not null unique,
    key             text    not null unique,
    reason          text    not null,
    source          text,
    signature       text,
    detail          text    not null,
    raw             blob,
    call_id         text,
    asset           text,
    account         text,
    amount          text,
    receipt_number  integer references receipt (number),
    quote_id        text,
    count           integer not null default 1,
    created_at      integer not null,
    seen_at         integer not null,
    resolved_at     integer,
    resolution      text,
    check ((resolved_at is null) = (resolution is null))
) strict;

create index anomaly_open on anomaly (number) where resolved_at is null;
create index anomaly_signature on anomaly (signature);
create index anomaly_receipt on anomaly (receipt_number);

create trigger receipt_is_never_changed before update on receipt
begin
    select raise(abort, 'the ledger is only added to');
end;

create trigger receipt_is_never_deleted before delete on receipt
begin
    select raise(abort, 'the ledger is only added to');
end;

create trigger allocation_is_never_changed before update on allocation
begin
    select raise(abort, 'the ledger is only added to');
end;

create trigger allocation_is_never_deleted before delete on allocation
begin
    select raise(abort, 'the ledger is only added to');
end;

create trigger outflow_is_never_changed before update on outflow
begin
    select raise(abort, 'the ledger is only added to');
end;

create trigger outflow_is_never_deleted before delete on outflow
begin
    select raise(abort, 'the ledger is only added to');
end;

create trigger journal_is_never_changed before update on journal
begin
    select raise(abort, 'the ledger is only added to');
end;

create trigger journal_is_never_deleted before delete on journal
begin
    select raise(abort, 'the ledger is only added to');
end;

create trigger posting_is_never_changed before update on posting
begin
    select raise(abort, 'the ledger is only added to');
end;

create trigger posting_is_never_deleted before delete on posting
begin
    select raise(abort, 'the ledger is only added to');
end;

-- For people and reports, with the columns of the source recipe. Lamports are an integer: of SOL there are less than
-- 2**60 in all. Money in suspense has no instance and no seconds.
create view gpu_rental_ledger as
select
    'A' || allocation.number as id,
    receipt.signature as tx_signature,
    receipt.payer as user_wallet,
    quote.gpu_instance_id,
    case when receipt.asset = 'SOL' and length(allocation.amount) < 19 then cast(allocation.amount as integer) end as amount_lamports,
    allocation.amount,
    receipt.asset,
    allocation.seconds as rent_seconds_added,
    'CONFIRMED' as status,
    strftime('%Y-%m-%dT%H:%M:%fZ', allocation.at / 1000.0, 'unixepoch') as created_at
from allocation
join receipt on receipt.number = allocation.receipt_number
join quote on quote.id = allocation.quote_id
union all
select
    'S' || anomaly.number,
    receipt.signature,
    receipt.payer,
    null,
    case when receipt.asset = 'SOL' and length(anomaly.amount) < 19 then cast(anomaly.amount as integer) end,
    anomaly.amount,
    receipt.asset,
    0,
    'SUSPENSE',
    strftime('%Y-%m-%dT%H:%M:%fZ', anomaly.created_at / 1000.0, 'unixepoch')
from anomaly
join receipt on receipt.number = anomaly.receipt_number
where anomaly.resolved_at is null;

create view gpu_instances as
select
    gpu_instance.id,
    case
        when gpu_instance.suspended_at is not null then 'SUSPENDED'
        when rental.number is null then 'AVAILABLE'
        when rental.ended_at is not null then 'EXPIRED'
        when rental.in_grace = 1 then 'GRACE'
        else 'ACTIVE'
    end as status,
    strftime('%Y-%m-%dT%H:%M:%fZ', rental.expires_at / 1000.0, 'unixepoch') as current_expiry,
    gpu_instance.name,
    case when rental.ended_at is null then rental.account end as renter
from gpu_instance
left join rental on rental.number = (
    select max(latest.number) from rental as latest where latest.gpu_instance_id = gpu_instance.id
);

-- One row a transaction, however many sources told of it.
create view webhook_events as
select
    signature as tx_signature,
    case
        when max(case when state = 'credited' then 1 else 0 end) = 1 then 'CREDITED'
        when min(case when state = 'terminal' then 1 else 0 end) = 1 then 'REFUSED'
        else 'PENDING'
    end as status,
    strftime('%Y-%m-%dT%H:%M:%fZ', min(received_at) / 1000.0, 'unixepoch') as received_at
from inbox
group by signature;
