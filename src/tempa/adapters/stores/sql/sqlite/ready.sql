-- Jobs that wait, in SQLite's way; postgres/ready.sql is the other.

-- name: waiting_accounts(lanes)
-- The accounts with queued jobs in these lanes: jumps through the ready index from account to account,
-- however many each has queued. room is how many more of its jobs may run; null: any number.
with recursive waiting (lane, account) as (
    select wanted.value, (select min(first.account) from job as first where first.status = 'queued' and first.lane = wanted.value)
    from json_each(cast(:lanes as text)) as wanted
    union all
    select waiting.lane, (
        select min(further.account)
        from job as further
        where further.status = 'queued' and further.lane = waiting.lane and further.account > waiting.account
    )
    from waiting
    where waiting.account is not null
),
named (account) as (
    select distinct waiting.account from waiting where waiting.account is not null
)
select
    named.account,
    coalesce(account.weight, 1.0) as weight,
    case
        when account.running_max is not null then account.running_max - (
            select count(*) from job as running where running.account = named.account and running.lease_until is not null
        )
    end as room
from named
left join account on account.id = named.account;

-- name: due_jobs(lanes, account, now, limit)
-- Highest priority first, then who has waited longest. Each lane gives its own first :limit from
-- the ready index, which ends there: one "lane in (...)" would read and sort all that is queued
-- (100,000 waiting for a GPU would slow every claim of the CPU workers). What is past its
-- deadline is left for overdue. Of equal work one runs at a time and the others wait for its result:
-- passed over while one is processing (0.5 us each: 10,000 cost a claim 4 ms), and of those that
-- come up together the first is taken.
select candidate.*
from (
    select
        ready.*,
        row_number() over (
            partition by coalesce(ready.work_key, ready.id) order by ready.priority desc, ready.run_at, ready.number
        ) as place
    from json_each(cast(:lanes as text)) as wanted
    join job as ready on ready.number in (
        select due.number
        from job as due
        where due.status = 'queued'
            and due.lane = wanted.value
            and due.account = :account
            and due.run_at <= :now
            and (due.deadline_at is null or due.deadline_at > :now)
            and not exists (
                select 1
                from job as running
                where running.account = due.account
                    and running.work_key = due.work_key
                    and running.lease_until is not null
            )
        order by due.priority desc, due.run_at, due.number
        limit :limit
    )
) as candidate
where candidate.place = 1
order by candidate.priority desc, candidate.run_at, candidate.number
limit :limit;
