-- What is pruned, a slice at a time: each parameter of a deletion is an array, a column of the rows. By
-- "= any(array)": a join with unnest may be planned as a reading of the whole table.

-- name: spent_jobs(before, after_at, after_number, limit)
-- From the index alone, from where the last look ended: what cannot go yet is looked at once a pass. It
-- cannot while a delivery of it is on its way or dead, or an event of it has not been fanned out; once it
-- can, nothing changes that. Conditions with a partial index of their own are written as expressions (see
-- jobs.sql), and "limit 1" stands for "exists", of which the planner may make a hash of the whole table
-- (3,771 pages instead of 264 for 25 of 50,000 jobs, measured). Another janitor may be at work: what it holds is passed over, so that neither waits.
select
    job.number,
    job.id,
    job.account,
    job.retained_until,
    (
        select 1
        from delivery
        where delivery.job_id = job.id and delivery.status || '' not in ('delivered', 'canceled')
        limit 1
    ) is not null
    or (
        select 1 from event where event.job_id = job.id and coalesce(event.position, -1) = -1 limit 1
    ) is not null as bound
from job
where job.removed = 1
    and (job.retained_until, job.number) > (:after_at, :after_number)
    and job.retained_until <= :before
order by job.retained_until, job.number
limit :limit
for update of job skip locked;

-- name: lock_keys_of(job_ids)
-- Before they are deleted, in the order in which admissions take them: an admission that gives such a key to
-- a new job and this slice never wait for each other.
select key
from idempotency
where job_id = any(array(select wanted.value from json_each(cast(:job_ids as text)) as wanted))
order by account, route, derived, key
for update;

-- name: endpoints_of(job_ids)
-- Where the deliveries of these jobs went: an endpoint goes with its last delivery.
select distinct endpoint_number
from delivery
where job_id = any(array(select wanted.value from json_each(cast(:job_ids as text)) as wanted));

-- name: bury(job_id, account, number, now)!
-- Before the job goes: a look at it finds the one or the other, never neither.
insert into tombstone (id, account, number, gone_at)
select *
from unnest(
    cast(:job_id as text[]), cast(:account as text[]), cast(:number as bigint[]), cast(:now as bigint[])
);

-- name: forget_deliveries(job_id)!
-- With their attempts.
delete from delivery where job_id = any(cast(:job_id as text[]));

-- name: forget_events(job_id)!
-- A reader of the feed keeps its position: the feed skips, as it may.
delete from event where job_id = any(cast(:job_id as text[]));

-- name: forget_attempts(job_id)!
-- The job's record of who worked on it.
delete from attempt where job_id = any(cast(:job_id as text[]));

-- name: forget_keys(job_id)!
-- None binds any more: the job answers 410 since its retention ended. A key that has passed to a new job
-- meanwhile is that one's.
delete from idempotency where job_id = any(cast(:job_id as text[]));

-- name: forget_jobs(job_id)!
-- Last, as all others point to it.
delete from job where id = any(cast(:job_id as text[]));
