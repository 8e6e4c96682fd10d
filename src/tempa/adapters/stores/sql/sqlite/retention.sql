-- What is pruned, job by job; postgres/retention.sql is the other.

-- name: spent_jobs(before, after_at, after_number, limit)
-- From the index alone, from where the last look ended: what cannot go yet is looked at once a pass. It
-- cannot while a delivery of it is on its way or dead, or an event of it has not been fanned out.
select
    number,
    id,
    account,
    retained_until,
    exists (
        select 1 from delivery where delivery.job_id = job.id and delivery.status not in ('delivered', 'canceled')
    )
    or exists (select 1 from event where event.job_id = job.id and event.position is null) as bound
from job
where removed = 1
    and (retained_until, number) > (:after_at, :after_number)
    and retained_until <= :before
order by retained_until, number
limit :limit;

-- name: lock_keys_of(job_ids)$
-- There is one writer: whoever writes holds every lock already.
select :job_ids;

-- name: endpoints_of(job_ids)
-- Where the deliveries of these jobs went: an endpoint goes with its last delivery.
select distinct endpoint_number from delivery where job_id in (select value from json_each(:job_ids));

-- name: bury*!
-- Before the job goes: a look at it finds the one or the other, never neither.
insert into tombstone (id, account, number, gone_at) values (:job_id, :account, :number, :now);

-- name: forget_deliveries*!
-- With their attempts.
delete from delivery where job_id = :job_id;

-- name: forget_events*!
-- A reader of the feed keeps its position: the feed skips, as it may.
delete from event where job_id = :job_id;

-- name: forget_attempts*!
-- The job's record of who worked on it.
delete from attempt where job_id = :job_id;

-- name: forget_keys*!
-- None binds any more: the job answers 410 since its retention ended.
delete from idempotency where job_id = :job_id;

-- name: forget_jobs*!
-- Last, as all others point to it.
delete from job where id = :job_id;
