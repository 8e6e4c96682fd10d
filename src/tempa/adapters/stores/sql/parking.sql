-- Endpoints that do not answer, and those that answer again: what is given up, and what is sent once more.

-- name: any_to_heal(endpoint_number)$
-- One, if an outage has killed any that were not sent again yet: perhaps none that still may be, which is asked
-- by whoever heals them.
select 1
from delivery
where endpoint_number = :endpoint_number
    and status = 'dead'
    and healed = 0
    and message is not null
    and reason in ('exhausted', 'endpoint_down')
order by event_number
limit 1;

-- name: any_left_to_heal(endpoint_number)$
-- One, if any may still be sent once more. What a later event of its job has overtaken
-- there stays dead: a job's events come in order, or not at all.
select 1
from delivery
where delivery.endpoint_number = :endpoint_number
    and delivery.status = 'dead'
    and delivery.healed = 0
    and delivery.message is not null
    and delivery.reason in ('exhausted', 'endpoint_down')
    and not exists (
        select 1
        from delivery as later
        where later.job_id = delivery.job_id
            and later.endpoint_number = delivery.endpoint_number
            and later.event_number > delivery.event_number
            and later.status = 'delivered'
    )
order by delivery.event_number
limit 1;

-- name: healing_endpoints(limit)
-- Those that answer again. One that is parked once more waits until it does.
select number from endpoint where healing = 1 and status = 'active' and parked_at is null order by number limit :limit;

-- name: letters_to_heal(endpoint_number, limit)
-- The oldest events first. A final refusal is none: the same request would be refused again. Nor is what a
-- later event of its job may be about to overtake: that is known when its attempt has ended.
select delivery.number
from delivery
where delivery.endpoint_number = :endpoint_number
    and delivery.status = 'dead'
    and delivery.healed = 0
    and delivery.message is not null
    and delivery.reason in ('exhausted', 'endpoint_down')
    and not exists (
        select 1
        from delivery as later
        where later.job_id = delivery.job_id
            and later.endpoint_number = delivery.endpoint_number
            and later.event_number > delivery.event_number
            and later.status in ('leased', 'delivered')
    )
order by delivery.event_number
limit :limit;

-- name: heal_letters(numbers, now)!
-- A new round, and the only one that comes by itself.
update delivery
set status = 'pending', healed = 1, retries_spent = 0, finished_at = null, reason = null, next_at = :now
where number in (select cast(value as bigint) from json_each(cast(:numbers as text)))
    and status = 'dead'
    and healed = 0
    and message is not null;

-- name: healing_begins(endpoint_number, health, pace_ms)!
-- What is sent once more goes at a pace of its own, if none is kept.
update endpoint set health = :health, pace_ms = :pace_ms where number = :endpoint_number;

-- name: healing_ends(endpoint_number)!
-- None is left.
update endpoint set healing = 0 where number = :endpoint_number;

-- name: expect_healing(numbers)!
-- Should they ever answer again.
update endpoint
set healing = 1
where number in (select cast(value as bigint) from json_each(cast(:numbers as text))) and healing = 0;

-- name: long_parked(before, limit)
-- Endpoints parked since before then where something waits that was due before then. What its owner paused
-- waits for its owner.
select endpoint.number
from endpoint
where endpoint.parked_at <= :before
    and endpoint.status in ('active', 'disabled')
    and (
        select 1
        from delivery as waiting
        where waiting.endpoint_number = endpoint.number and waiting.status = 'pending' and waiting.next_at <= :before
        limit 1
    ) is not null
order by endpoint.parked_at
limit :limit;

-- name: stranded_endpoints(limit)
-- Removed ones where something waits all the same, by an index of the removed.
select endpoint.number
from endpoint
where endpoint.status = 'removed'
    and (
        select 1
        from delivery as waiting
        where waiting.endpoint_number = endpoint.number and waiting.finished_at is null
        limit 1
    ) is not null
order by endpoint.number
limit :limit;

-- name: parked_endpoints()
-- By why: their breaker is open, or their owner or their receiver wants it so.
select case when status = 'active' then 'open' else status end as why, count(*) as endpoints
from endpoint
where parked_at is not null
group by 1;

-- name: line_since()$
-- Since when the endpoint that waits longest for a deliverer could be sent to.
select min(line_at) from endpoint where line_at is not null;
