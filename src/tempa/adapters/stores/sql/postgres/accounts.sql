-- Accounts, in PostgreSQL's way; sqlite/accounts.sql is the other.

-- name: account_for_update(account)^
-- An account that nobody changes until this transaction ends. Its keys may be made meanwhile.
select * from account where id = :account for no key update;

-- name: lock_admissions(accounts)
-- Of each of these accounts one transaction admits at a time: what is counted next is then exact. Held to the
-- commit, and in one order, so that no two wait for each other. The first number is the next after that of
-- locks.sql; two accounts with one hash share a lock, which only makes them wait.
select pg_advisory_xact_lock(1952804977, hashtext(wanted.value))
from (select value from json_each(cast(:accounts as text)) order by value) as wanted;

-- name: open_jobs(accounts)
-- How many of each account's jobs wait or run. Each of its queues is counted in the ready index by all that
-- names it: no history is read, but for what vacuum may not clear yet. By itself, and not joined: without
-- statistics the join read the whole index for it (163 pages instead of 10 beside 20,000 of another's jobs).
select wanted.value as account, (
    select cast(coalesce(sum((
        select count(*)
        from job
        where job.status = 'queued'
            and job.lane = queue.lane
            and job.account = queue.account
            and job.priority = queue.priority
    )), 0) as bigint)
    from queue
    where queue.account = wanted.value
) + (
    select count(*) from job as running where running.account = wanted.value and running.lease_until is not null
) as jobs
from json_each(cast(:accounts as text)) as wanted;
