-- Jobs that wait, each queue (account, lane, priority) from its mark on: see postgres/queues.py. Parameters
-- that name a queue are arrays, a column of the rows.

-- name: queues_beyond(known)
-- All of them, if there are more than a process knows: it meets them once. None is ever deleted.
select lane, account, priority from queue where (select count(*) from queue) > :known;

-- name: wait_for_delayed(lanes, now)$
-- Milliseconds until the first job that is tried again is due: next_delayed (jobs.sql) by the clock here.
-- :now is given in tests.
select min((
    select delayed.run_at
    from job as delayed
    where delayed.status = 'queued'
        and delayed.lane = wanted.value
        and delayed.run_at > delayed.created_at
        and delayed.run_at > present.now
    order by delayed.run_at
    limit 1
)) - min(present.now)
from (select coalesce(cast(:now as bigint), now_ms()) as now) as present
cross join json_each(cast(:lanes as text)) as wanted;

-- name: open_queues(lane, account, priority)!
-- Before its first job is admitted.
insert into queue (lane, account, priority)
select * from unnest(cast(:lane as text[]), cast(:account as text[]), cast(:priority as integer[]))
on conflict do nothing;

-- name: waiting_accounts(lane, account, priority, run_at, number)
-- The accounts with a queued job beyond the mark of one of their queues: one probe of the ready index
-- each, and for that lateral: "exists" may become a join that reads the whole index (355 pages instead of 8
-- behind an idle snapshot over 2,000 jobs, measured with fresh statistics). room is how many more of its jobs may run; null: any number.
-- What time it is and how many queues there are comes along: one row without an account if nobody waits.
select
    present.now,
    present.queues,
    found.account,
    coalesce(account.weight, 1.0) as weight,
    case
        when account.running_max is not null then account.running_max - (
            select count(*) from job as running where running.account = found.account and running.lease_until is not null
        )
    end as room
from (select now_ms() as now, (select count(*) from queue) as queues) as present
left join (
    select distinct queue.account
    from unnest(
        cast(:lane as text[]), cast(:account as text[]), cast(:priority as integer[]),
        cast(:run_at as bigint[]), cast(:number as bigint[])
    ) as queue (lane, account, priority, run_at, number)
    cross join lateral (
        select job.number
        from job
        where job.status = 'queued'
            and job.lane = queue.lane
            and job.account = queue.account
            and job.priority = queue.priority
            and (job.run_at, job.number) >= (queue.run_at, queue.number)
        order by job.run_at, job.number
        limit 1
    ) as first
) as found on true
left join account on account.id = found.account;

-- name: due_jobs(lane, account, priority, run_at, number, now, limit)
-- Highest priority first, then who has waited longest. Each queue gives its own first from its mark on.
-- What is past its deadline is left for overdue. Of equal work one runs at a time and the others wait for
-- its result: passed over while one is processing, and of those that come up together the first is taken.
-- All queues are of one account. What is known of it, what time it is (:now, if null) and how many queues
-- there are comes along: one row without a job if none is due.
select
    present.now,
    present.queues,
    coalesce(account.weight, 1.0) as weight,
    case
        when account.running_max is not null then account.running_max - (
            select count(*) from job as running where running.account = account.id and running.lease_until is not null
        )
    end as room,
    candidate.*
from (
    select coalesce((cast(:now as bigint[]))[1], now_ms()) as now, (select count(*) from queue) as queues
) as present
left join account on account.id = (cast(:account as text[]))[1]
left join lateral (
    select
        due.*,
        row_number() over (
            partition by coalesce(due.work_key, due.id) order by due.priority desc, due.run_at, due.number
        ) as place
    from unnest(
        cast(:lane as text[]), cast(:account as text[]), cast(:priority as integer[]),
        cast(:run_at as bigint[]), cast(:number as bigint[]), cast(:limit as integer[])
    ) as queue (lane, account, priority, run_at, number, most)
    cross join lateral (
        select job.*
        from job
        where job.status = 'queued'
            and job.lane = queue.lane
            and job.account = queue.account
            and job.priority = queue.priority
            and (job.run_at, job.number) >= (queue.run_at, queue.number)
            and job.run_at <= present.now
            and (job.deadline_at is null or job.deadline_at > present.now)
            and not exists (
                select 1
                from job as running
                where running.account = job.account
                    and running.work_key = job.work_key
                    and running.lease_until is not null
            )
        order by job.run_at, job.number
        limit queue.most
    ) as due
) as candidate on candidate.place = 1
order by candidate.priority desc, candidate.run_at, candidate.number;
