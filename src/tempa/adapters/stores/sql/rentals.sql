-- GPU instances and who rents them until when.

-- name: insert_instance(id, name, prices, now)!
-- An instance to be rented out.
insert into gpu_instance (id, name, prices, created_at) values (:id, :name, :prices, :now);

-- name: change_prices(gpu_instance_id, prices)!
-- Quotes that were made keep theirs until they end.
update gpu_instance set prices = :prices where id = :gpu_instance_id;

-- name: instance(gpu_instance_id)^
-- With its latest rental, if it was ever rented.
select
    gpu_instance.*, rental.account, rental.started_at, rental.expires_at, rental.seconds, rental.in_grace,
    rental.quote_id, rental.signature, rental.ended_at
from gpu_instance
left join rental on rental.number = (
    select max(latest.number) from rental as latest where latest.gpu_instance_id = gpu_instance.id
)
where gpu_instance.id = :gpu_instance_id;

-- name: list_instances(after, limit)
-- All, in the order of their ids, which is that of time.
select
    gpu_instance.*, rental.account, rental.started_at, rental.expires_at, rental.seconds, rental.in_grace,
    rental.quote_id, rental.signature, rental.ended_at
from gpu_instance
left join rental on rental.number = (
    select max(latest.number) from rental as latest where latest.gpu_instance_id = gpu_instance.id
)
where cast(:after as text) is null or gpu_instance.id > :after
order by gpu_instance.id
limit :limit;

-- name: extend_rental(gpu_instance_id, account, seconds, quote_id, signature, latest, now)^
-- Begin or prolong, in one relative statement: it reads no time that another payment may be moving, so none is
-- lost, whatever else is locked. No row back: suspended, somebody else's, or beyond the calendar.
insert into rental (gpu_instance_id, account, started_at, expires_at, seconds, quote_id, signature)
select
    gpu_instance.id, cast(:account as text), cast(:now as bigint),
    cast(:now as bigint) + 1000 * cast(:seconds as bigint), cast(:seconds as bigint), cast(:quote_id as text),
    cast(:signature as text)
from gpu_instance
where gpu_instance.id = :gpu_instance_id and gpu_instance.suspended_at is null
on conflict (gpu_instance_id) where ended_at is null do update
set expires_at = case when rental.expires_at > cast(:now as bigint) then rental.expires_at else cast(:now as bigint) end
        + 1000 * excluded.seconds,
    seconds = rental.seconds + excluded.seconds,
    in_grace = 0,
    quote_id = excluded.quote_id,
    signature = excluded.signature
where rental.account = excluded.account and rental.expires_at + 1000 * excluded.seconds <= cast(:latest as bigint)
returning expires_at;

-- name: renter(gpu_instance_id)^
-- Who has it now, and whether anybody may.
select gpu_instance.suspended_at, rental.account, rental.expires_at
from gpu_instance
left join rental on rental.gpu_instance_id = gpu_instance.id and rental.ended_at is null
where gpu_instance.id = :gpu_instance_id;

-- name: warn_rentals(soon, limit)
-- Each expiry is warned of once; one that was moved on is another. On a suspended instance time stands still.
update rental
set warned_for = expires_at
where number in (
        select near.number
        from rental as near
        join gpu_instance on gpu_instance.id = near.gpu_instance_id and gpu_instance.suspended_at is null
        where near.ended_at is null
            and near.expires_at <= :soon
            and (near.warned_for is null or near.warned_for <> near.expires_at)
        order by near.expires_at
        limit :limit
    )
    and ended_at is null
    and expires_at <= :soon
returning *;

-- name: grace_rentals(now, limit)!
-- Their time is over; they may be prolonged still.
update rental
set in_grace = 1
where number in (
        select past.number
        from rental as past
        join gpu_instance on gpu_instance.id = past.gpu_instance_id and gpu_instance.suspended_at is null
        where past.ended_at is null and past.expires_at <= :now and past.in_grace = 0
        order by past.expires_at
        limit :limit
    )
    and ended_at is null
    and expires_at <= :now;

-- name: end_rentals(before, now, limit)
-- The grace is over too: the instance is free. Looked at again in the row itself, which a payment may have moved.
update rental
set ended_at = :now
where number in (
        select past.number
        from rental as past
        join gpu_instance on gpu_instance.id = past.gpu_instance_id and gpu_instance.suspended_at is null
        where past.ended_at is null and past.expires_at <= :before
        order by past.expires_at
        limit :limit
    )
    and ended_at is null
    and expires_at <= :before
returning *;

-- name: suspend_instance(gpu_instance_id, now)!
-- The first suspension's time stays.
update gpu_instance set suspended_at = :now where id = :gpu_instance_id and suspended_at is null;

-- name: shift_rental(gpu_instance_id, now)!
-- What was left when it was suspended is left when it is resumed.
update rental
set expires_at = expires_at + (
        select cast(:now as bigint) - gpu_instance.suspended_at from gpu_instance where gpu_instance.id = rental.gpu_instance_id
    )
where gpu_instance_id = :gpu_instance_id
    and ended_at is null
    and expires_at > (
        select gpu_instance.suspended_at from gpu_instance where gpu_instance.id = rental.gpu_instance_id
    );

-- name: resume_instance(gpu_instance_id)!
-- It may be used again.
update gpu_instance set suspended_at = null where id = :gpu_instance_id and suspended_at is not null;
