"""Rows past their time: jobs are pruned with all that is theirs, a slice a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.sql import encode
from tempa.core.clock import from_ms
from tempa.jobs.ports import Pruned

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.jobs.ports import Place

START: Place = (-1, -1)  # before every job


class RetentionPart(Access):
    """`JobStore`: pruning, and what is known of the pruned."""

    async def prune(self, kept_seconds: float, after: Place | None, limit: int) -> Pruned:
        """Delete those that may go of the next `limit` removed jobs `kept_seconds` past their retention.

        They go with their events, attempts, keys and finished deliveries, and leave a tombstone. A job
        stays while a delivery of it is unfinished or dead, or an event of it has not been fanned out.
        """
        return await self._write(_prune, kept_seconds, after or START, limit)

    async def gone_at(self, account: str, job_id: str) -> datetime | None:
        """When a job of this account was pruned. None: it was not, or that is forgotten too."""
        return await self._read(_gone_at, account, job_id)

    async def forget_gone(self, kept_seconds: float, limit: int) -> int:
        """Delete up to `limit` tombstones older than that; how many there were."""
        return await self._write(_forget_gone, kept_seconds, limit)


def _prune(kept_seconds: float, after: Place, limit: int) -> Flow[Done[Pruned]]:
    moment = yield MOMENT
    spent = yield ASK.spent_jobs(
        before=_before(moment.now, kept_seconds), after_at=after[0], after_number=after[1], limit=limit
    )
    free = [job for job in spent if not job["bound"]]
    if free:
        yield from _forget(free, moment.now)
    further = (spent[-1]["retained_until"], spent[-1]["number"]) if len(spent) == limit else None
    return Done(Pruned(len(free), further))


def _forget(jobs: Sequence[Any], now: int) -> Flow[None]:
    job_ids = encode([job["id"] for job in jobs])
    rows = [{"job_id": job["id"]} for job in jobs]
    yield ASK.lock_keys_of(job_ids=job_ids)
    endpoints = yield ASK.endpoints_of(job_ids=job_ids)
    yield ASK.bury(
        [
            {"job_id": job["id"], "account": job["account"], "number": job["number"], "now": now}
            for job in jobs
        ]
    )
    yield ASK.forget_deliveries(rows)
    yield ASK.forget_events(rows)
    yield ASK.forget_attempts(rows)
    yield ASK.forget_keys(rows)
    yield ASK.forget_jobs(rows)
    yield from _prune_endpoints(sorted(row["endpoint_number"] for row in endpoints), now)


def _prune_endpoints(numbers: Sequence[int], now: int) -> Flow[None]:
    if numbers:  # the lock last, as fan-outs wait for it
        yield ASK.lock_feed()  # only a fan-out gives an endpoint new deliveries: none may do so meanwhile
    for number in numbers:
        yield ASK.prune_endpoint(endpoint_number=number, now=now)


def _gone_at(account: str, job_id: str) -> Flow[datetime | None]:
    gone_at = yield ASK.gone_at(account=account, job_id=job_id)
    return None if gone_at is None else from_ms(gone_at)


def _forget_gone(kept_seconds: float, limit: int) -> Flow[Done[int]]:
    moment = yield MOMENT
    forgotten = yield ASK.forget_tombstones(before=_before(moment.now, kept_seconds), limit=limit)
    return Done(forgotten)


def _before(now: int, kept_seconds: float) -> int:
    return now - round(kept_seconds * 1000)
