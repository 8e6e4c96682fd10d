-- Deliveries whose waiting ends, or their lease: the queries of sqlite/waiting.sql. What somebody holds is passed
-- over, and left to the next slice. Outcomes take deliveries before their endpoint, and removals do; who gives
-- up what is parked takes the endpoint first. If one of them waited for a delivery with something in its hands,
-- two would wait for each other; and what had just been delivered would be canceled.

-- name: expire_deliveries(numbers, before, now, limit)
-- Behind the locks of their endpoints: none of them answers meanwhile.
update delivery
set status = 'dead', reason = 'endpoint_down', finished_at = :now
where number = any (array(
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
    for update of waiting skip locked
))
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
where number = any (array(
    select waiting.number
    from delivery as waiting
    where waiting.endpoint_number = :endpoint_number and waiting.finished_at is null
    limit :limit
    for update skip locked
));

-- name: free_deliveries(lapsed_by)
-- Leases that ran out, or all of them (null) when their holder is known to be dead. The cut-short
-- attempt keeps its number and spends no retry: that it was cut short is not the receiver's doing.
update delivery
set status = 'pending', lease_until = null
where number = any (array(
    select lapsed.number
    from delivery as lapsed
    where lapsed.status = 'leased' and (cast(:lapsed_by as bigint) is null or lapsed.lease_until <= :lapsed_by)
    for update skip locked
))
returning endpoint_number;
