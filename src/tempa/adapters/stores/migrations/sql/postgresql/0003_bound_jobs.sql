-- Jobs that are bound to a rented GPU instance, so that those of a rental that is over are found without the queue.
alter table job add column gpu_instance_id text;

-- Only unfinished jobs are in it. "is not null": a predicate that no query for one job implies (as job_lease).
create index job_bound on job (gpu_instance_id, account, number)
    where gpu_instance_id is not null and completed_at is null;
