-- What past jobs took, for those that wait.

-- name: past_jobs(engine, since, limit)
-- The latest that were done, by an index that has no others; what came from the cache tells of no kernel.
select created_at, started_at, completed_at
from job
where engine = :engine and status = 'completed' and cached = 0 and completed_at >= :since
order by completed_at desc
limit :limit;
