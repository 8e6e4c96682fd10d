-- What operators did to instances: prices of their time, and what a ledger that is built anew goes by.

-- name: note_act(gpu_instance_id, kind, prices, now)!
-- Behind the journal's last entry. "added" needs no lock: no entry is about the instance yet.
insert into instance_act (gpu_instance_id, kind, prices, after_entry, at)
values (
    :gpu_instance_id, :kind, cast(:prices as text), coalesce((select max(number) from journal), 0), :now
);

-- name: acts_after(after, limit)
-- In order.
select * from instance_act where number > :after order by number limit :limit;

-- name: prices_at(gpu_instance_id, at)^
-- What it cost then. Of two changes in one millisecond the later.
select prices
from instance_act
where gpu_instance_id = :gpu_instance_id and prices is not null and at <= :at
order by at desc, number desc
limit 1;
