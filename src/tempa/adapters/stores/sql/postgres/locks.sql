-- Locks that last until their transaction ends. The first number is ours among all who use this database
-- (four letters of "tempa"); the second stands for a name: 0 the schema, 1 claims, 2 the feed, 3
-- deliveries, 4 registrations, 5 the ledger. A client that stops in the middle loses its transaction after a few seconds, and the
-- lock with it (idle_in_transaction_session_timeout).

-- name: lock_claims()$
-- One claim at a time: accounts' limits, equal work and whose turn it is are then exact. A claim takes
-- about a millisecond, and what it starts takes seconds.
select pg_advisory_xact_lock(1952804976, 1);

-- name: lock_feed()$
-- One sequencer at a time, so that positions become visible in their own order.
select pg_advisory_xact_lock(1952804976, 2);

-- name: lock_deliveries()$
-- One claim of deliveries at a time: what an endpoint has in flight is then exact.
select pg_advisory_xact_lock(1952804976, 3);

-- name: lock_registrations()$
-- One endpoint is registered at a time: how many an account has is then exact.
select pg_advisory_xact_lock(1952804976, 4);

-- name: lock_ledger()$
-- One posting at a time: each entry of the journal hangs on the one before it.
select pg_advisory_xact_lock(1952804976, 5);

-- name: job_for_update(job_id)^
-- A job that nobody changes until this transaction ends.
select * from job where id = :job_id for update;

-- name: now()$
-- The one clock of a deployment, in Unix milliseconds. Read after a lock is taken, never before.
select now_ms();

-- name: advance_feed(events)$
-- The last of :events new positions. Behind the lock of the feed, so that they are consecutive.
select max(nextval('feed_position')) from generate_series(1, :events);

-- name: lock_endpoints(numbers)
-- Before an endpoint's place in the line is reckoned, in a statement of its own: the next one then sees
-- what the transaction that held it has written. In one order, so that no two wait for each other.
select number
from endpoint
where number in (select cast(value as bigint) from json_each(cast(:numbers as text)))
order by number
for no key update;

-- name: endpoints_for_update(numbers)
-- As they are once they are locked, in the order in which all take them.
select *
from endpoint
where number in (select cast(value as bigint) from json_each(cast(:numbers as text)))
order by number
for no key update;
