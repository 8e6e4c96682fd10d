"""Long polls: an answer that is held until there is news."""

from __future__ import annotations

from fastapi import Request
from starlette.datastructures import Headers

from tempa.api.etags import asked_tags
from tempa.api.parts import ApiParts
from tempa.api.presence import POLL_SECONDS, presence
from tempa.core.work import either, job_topic
from tempa.jobs.model import Job, Status
from tempa.jobs.views import status_at

_EVENTS_MAX = 1000  # of one job: a dozen or two in fact


async def named_statuses(parts: ApiParts, job: Job, headers: Headers) -> frozenset[Status]:
    """The statuses that the ETags of `If-None-Match` named: what the client knows already.

    Without the header, or with `*`, that is the present one. An ETag that this job never had names
    none.
    """
    tags = asked_tags(headers)
    if tags is None or "*" in tags:
        return frozenset({job.status})
    sequences = [int(digits) for tag in tags if (digits := tag.strip('"')).isdecimal() and len(digits) <= 9]
    known = [sequence for sequence in sequences if 1 <= sequence <= job.sequence]
    if not known:
        return frozenset()
    events = await parts.jobs.job_events(job.id, 0, _EVENTS_MAX)
    return frozenset(status for sequence in known if (status := status_at(events, sequence)))


async def hold(parts: ApiParts, request: Request, job: Job, known: frozenset[Status], seconds: float) -> Job:
    """The job as it is once its status is none of `known`, `seconds` have passed or nobody waits any more."""
    until = parts.clock.monotonic() + seconds
    async with presence(request.receive, parts.stopping) as over:
        with parts.wake.listen(job_topic(job.id)) as bell:
            while True:
                job = await parts.jobs.job(job.account, job.id) or job
                left = until - parts.clock.monotonic()
                if job.status not in known or job.status.terminal or left <= 0 or over.is_set():
                    return job
                await either(bell.wait(min(left, POLL_SECONDS)), over.wait())
