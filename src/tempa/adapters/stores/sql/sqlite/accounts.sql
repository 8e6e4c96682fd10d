-- Accounts, in SQLite's way; postgres/accounts.sql is the other. One writer: nothing needs a lock.

-- name: account_for_update(account)^
-- An account that nobody changes until this transaction ends.
select * from account where id = :account;

-- name: open_jobs(account)$
-- How many of its jobs wait or run. Those that wait are read from the ready index, which begins with the lane: jumps from lane to lane, and through nothing that is finished.
with recursive waiting (lane) as (
    select min(first.lane) from job as first where first.status = 'queued'
    union all
    select (select min(further.lane) from job as further where further.status = 'queued' and further.lane > waiting.lane)
    from waiting
    where waiting.lane is not null
)
select (
    select count(*)
    from waiting
    join job as queued on queued.status = 'queued' and queued.lane = waiting.lane and queued.account = :account
) + (
    select count(*) from job as running where running.account = :account and running.lease_until is not null
);

-- name: add_compute(account, ended_at, compute_time_ms)!
-- What an attempt has cost, on the day on which it ended. In the transaction that ends it.
insert into account_day (day, account, compute_ms) values (:ended_at / 86400000, :account, :compute_time_ms);
