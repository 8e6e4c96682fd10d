-- Deliveries from the people's side: lists, dead letters and their groups.

-- name: list_deliveries(account, status, job_id, endpoint_id, before, limit)
-- In the order in which they were made, which their ids are not when the clock was set back. A page goes on
-- from where `before` stands, or from the next older one if that is gone. Pending at an endpoint whose
-- deliveries are parked reads as parked.
select *
from told_delivery
where account = :account
    and (
        cast(:before as text) is null
        or number < coalesce(
            (select known.number from delivery as known where known.id = :before and known.account = :account),
            (
                select max(older.number) + 1
                from delivery as older
                where older.account = :account and older.id < :before
            )
        )
    )
    and (
        cast(:status as text) is null
        or case
            when status = 'pending' and parked_at is not null then 'parked'
            else status
        end = :status
    )
    and (cast(:job_id as text) is null or job_id = :job_id)
    and (cast(:endpoint_id as text) is null or endpoint_id = :endpoint_id)
order by number desc
limit :limit;

-- name: delivery_of_account(account, delivery_id)^
-- As with jobs: another account's delivery is not found.
select *
from told_delivery
where id = :delivery_id and account = :account;

-- name: delivery_attempts(delivery_number)
-- All of them, those of earlier rounds too.
select * from delivery_attempt where delivery_number = :delivery_number order by attempt;

-- name: dead_groups(account)
-- Dead letters by endpoint and reason, with the answer that the latest of them ended with.
select
    endpoint.id || '.' || dead.reason as id,
    endpoint.id as endpoint_id,
    endpoint.url,
    dead.reason,
    count(*) as letters,
    sum(case when dead.message is null or endpoint.status = 'removed' then 1 else 0 end) as spent,
    sum(
        case
            when dead.healed = 0
                and dead.message is not null
                and endpoint.status in ('active', 'paused', 'disabled')
                and dead.reason in ('exhausted', 'endpoint_down')
                and not exists (
                    select 1
                    from delivery as later
                    where later.job_id = dead.job_id
                        and later.endpoint_number = dead.endpoint_number
                        and later.event_number > dead.event_number
                        and later.status = 'delivered'
                )
                then 1
            else 0
        end
    ) as healable,
    min(dead.finished_at) as oldest,
    max(dead.finished_at) as newest,
    (
        select last.http_status
        from delivery as latest
        join delivery_attempt as last on last.delivery_number = latest.number and last.attempt = latest.attempts
        where latest.status = 'dead'
            and latest.account = :account
            and latest.endpoint_number = dead.endpoint_number
            and latest.reason = dead.reason
        order by latest.finished_at desc, latest.number desc
        limit 1
    ) as last_http_status,
    (
        select last.error
        from delivery as latest
        join delivery_attempt as last on last.delivery_number = latest.number and last.attempt = latest.attempts
        where latest.status = 'dead'
            and latest.account = :account
            and latest.endpoint_number = dead.endpoint_number
            and latest.reason = dead.reason
        order by latest.finished_at desc, latest.number desc
        limit 1
    ) as last_error
from delivery as dead
join endpoint on endpoint.number = dead.endpoint_number
where dead.status = 'dead' and dead.account = :account
group by endpoint.id, endpoint.url, dead.endpoint_number, dead.reason
order by newest desc, endpoint.url, dead.reason;

-- name: dead_letters(account, ids, group, endpoint_id, since, before, limit)
-- The same conditions as in dead_numbers, as rows for people, in pages.
select *
from told_delivery
where status = 'dead'
    and account = :account
    and (cast(:ids as text) is null or id in (select value from json_each(cast(:ids as text))))
    and (cast(:group as text) is null or endpoint_id || '.' || reason = :group)
    and (cast(:endpoint_id as text) is null or endpoint_id = :endpoint_id)
    and (cast(:since as bigint) is null or finished_at >= :since)
    and (
        cast(:before as text) is null
        or number < coalesce(
            (select known.number from delivery as known where known.id = :before and known.account = :account),
            (
                select max(older.number) + 1
                from delivery as older
                where older.account = :account and older.id < :before
            )
        )
    )
order by number desc
limit :limit;

-- name: dead_numbers(account, ids, group, endpoint_id, since)
-- What a re-drive or a discard means, oldest event first. Read once; then written in slices. Spent: it
-- cannot be sent again, as its payload is past its retention or its endpoint was removed.
select
    delivery.number,
    delivery.endpoint_number,
    case when delivery.message is null or endpoint.status = 'removed' then 1 else 0 end as spent
from delivery
join endpoint on endpoint.number = delivery.endpoint_number
where delivery.status = 'dead'
    and delivery.account = :account
    and (cast(:ids as text) is null or delivery.id in (select value from json_each(cast(:ids as text))))
    and (cast(:group as text) is null or endpoint.id || '.' || delivery.reason = :group)
    and (cast(:endpoint_id as text) is null or endpoint.id = :endpoint_id)
    and (cast(:since as bigint) is null or delivery.finished_at >= :since)
order by delivery.event_number, delivery.number;

-- name: count_deliveries()
-- What is not over and what needs somebody, each from its partial index; what was delivered is not read.
select
    case when waiting.status = 'pending' and endpoint.parked_at is not null then 'parked' else waiting.status end
        as status,
    cast(sum(waiting.deliveries) as bigint) as deliveries
from (
    select endpoint_number, status, count(*) as deliveries
    from delivery
    where finished_at is null
    group by endpoint_number, status
) as waiting
join endpoint on endpoint.number = waiting.endpoint_number
group by 1
union all
select status, count(*) as deliveries from delivery where status = 'dead' group by status;
