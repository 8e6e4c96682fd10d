-- Deliveries whose waiting ends, or their lease. There is one writer; postgres/waiting.sql says who holds what.

-- name: expire_deliveries(numbers, before, now, limit)
-- Behind the locks of their endpoints: none of them answers meanwhile.
update delivery
set status = 'dead', reason = 'endpoint_down', finished_at = :now
where number in (
    select waiting.number
    from endpoint
    join delivery as waiting
        on waiting.endpoint_number = endpoint.number
        and waiting.status = 'pending'
        and waiting.next_at <= :before
    where endpoint.number in (select cast(value as bigint) from json_each(cast(:numbers as text)))
        and endpoint.parked_at <= :before
        and endpoint.status in ('active', 'disabled')
    limit :limit
)
returning
    id,
    account,
    endpoint_number,
    job_id,
    type,
    attempts,
    healed,
    (select event.id from event where event.number = delivery.event_number) as event_id,
    (select endpoint.id from endpoint where endpoint.number = delivery.endpoint_number) as endpoint_id,
    (select endpoint.url from endpoint where endpoint.number = delivery.endpoint_number) as url;

-- name: cancel_deliveries(endpoint_number, now, limit)!
-- What waits and what is on its way: that may arrive, and its answer is no longer waited for.
update delivery
set status = 'canceled', finished_at = :now, lease_until = null
where number in (
    select waiting.number
    from delivery as waiting
    where waiting.endpoint_number = :endpoint_number and waiting.finished_at is null
    limit :limit
);

-- name: free_deliveries(lapsed_by)
-- Leases that ran out, or all of them (null) when their holder is known to be dead. The cut-short
-- attempt keeps its number and spends no retry: that it was cut short is not the receiver's doing.
update delivery
set status = 'pending', lease_until = null
where status = 'leased' and (cast(:lapsed_by as bigint) is null or lease_until <= :lapsed_by)
returning endpoint_number;
