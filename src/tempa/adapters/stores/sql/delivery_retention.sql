-- Deliveries past their time, a slice a transaction: first what was sent and answered, then the record of it.

-- name: spent_payloads(before, limit)
-- The earliest first, from an index of those that still have theirs.
select number
from delivery
where finished_at is not null and message is not null and finished_at < :before
order by finished_at
limit :limit;

-- name: forget_messages(numbers)!
-- Of the finished only: one that was driven again meanwhile needs its own.
update delivery
set message = null
where number in (select cast(value as bigint) from json_each(cast(:numbers as text))) and finished_at is not null;

-- name: forget_excerpts(numbers, nothing)!
-- What receivers answered is payload too.
update delivery_attempt
set response_excerpt = :nothing
where outcome is not null
    and length(response_excerpt) > 0
    and delivery_number in (
        select number
        from delivery
        where number in (select cast(value as bigint) from json_each(cast(:numbers as text))) and message is null
    );

-- name: prune_notices(before, limit)!
-- Events about no job, which have no sequence, once no delivery tells of them. Those that were not fanned out stay.
delete from event
where number in (
    select old.number
    from event as old
    where old.sequence is null
        and old.at < :before
        and old.position is not null
        and (select 1 from delivery where delivery.event_number = old.number limit 1) is null
    order by old.at
    limit :limit
);

-- name: prune_deliveries(before, limit)
-- In slices, so that the writer is never held up for long; attempts go with their delivery.
delete from delivery
where number in (
    select number from delivery where finished_at < :before order by finished_at limit :limit
)
returning endpoint_number;

-- name: prune_endpoint(endpoint_number, now)!
-- A URL with a job number in it is an endpoint a job: with its last delivery it goes, and so does a removed
-- one; but not what its owner paused. "limit 1" and not
-- "exists", for which PostgreSQL without statistics gathers all of an endpoint's deliveries first.
delete from endpoint
where number = :endpoint_number
    and (origin = 'job' or status = 'removed')
    and status <> 'paused'
    and held_until <= :now
    and (select 1 from delivery where delivery.endpoint_number = endpoint.number limit 1) is null;
