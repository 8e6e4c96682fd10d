"""Stores in memory, as small as the API needs them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tempa.core.accounts import Account, AccountFull, ApiKey
from tempa.core.errors import Problem, StoreUnavailable
from tempa.core.events import Event
from tempa.core.ids import new_id
from tempa.core.limits import DEFAULT_LIMITS, Limits
from tempa.jobs.model import (
    STATUS_AFTER_EVENT,
    Admission,
    CancelOutcome,
    Job,
    JobFilter,
    NewJob,
    PastJob,
    Status,
    StoredFile,
    Usage,
    Verdict,
)
from tempa.jobs.ports import Reading, RunLimits, Takes
from tempa.webhooks.model import Attempt, DeadFilter, DeadGroup, Delivery, DeliveryStatus

TEMPLATE = {"id": "flanged-tube@1", "parameters": {"type": "object"}}


class FakeEngine:
    """Wants `parameters.length`, a positive number."""

    name, version, kind, family, model = "opencascade-brep", "1", "cad", "cad_generation", "occt"
    lane, deterministic, life_cycle, module = "cpu", True, "fork", "nowhere"
    limits = RunLimits(1.0, 1 << 20)
    takes: tuple[Takes, ...] = ()

    def read(self, body: Mapping[str, Any], limits: Limits) -> Reading:
        parameters = body.get("parameters")
        length = parameters.get("length") if isinstance(parameters, dict) else None
        if not isinstance(length, (int, float)) or not 0 < length < 1e6:
            return Reading(None, (Problem("/parameters/length", "Must be a length in mm.", 1e6),))
        return Reading({"length": length})

    def describe(self, limits: Limits = DEFAULT_LIMITS) -> Mapping[str, Any]:
        return {"name": self.name, "version": self.version, "templates": [TEMPLATE]}


class PictureEngine(FakeEngine):
    """Wants a picture that does not begin with `bad`, and may have a depth."""

    name, kind, family, model = "relief-splat", "splat", "3d_reconstruction", "relief-splat"
    takes = (
        Takes("image", lambda limits: limits.image_bytes, ("image/*",), too_large="IMAGE_TOO_LARGE"),
        Takes("depth", lambda limits: limits.image_bytes, ("image/*",), required=False),
    )

    def look(self, name: str, path: Path, parameters: object, limits: Limits) -> Problem | None:
        if path.read_bytes().startswith(b"bad"):
            return Problem("", f"This {name} is bad.", 7, "IMAGE_UNREADABLE")
        return None

    def read(self, body: Mapping[str, Any], limits: Limits) -> Reading:
        seed = (body.get("parameters") or {}).get("seed", 0)
        return Reading({"seed": seed}) if seed >= 0 else Reading(None, (Problem("/parameters/seed", "No."),))


class Switch:
    """A store that can be taken away."""

    def __init__(self) -> None:
        self.away = False

    def check(self) -> None:
        if self.away:
            raise StoreUnavailable


@dataclass
class FakeJobs:
    """`JobStore`, as far as the API calls it."""

    switch: Switch = field(default_factory=Switch)
    rows: dict[str, Job] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    files: dict[str, StoredFile] = field(default_factory=dict)
    keys: dict[tuple[str, str, bool, str], tuple[str, str]] = field(default_factory=dict)
    looks: int = 0
    asked: list[JobFilter] = field(default_factory=list)
    positions: int = 3
    past: list[PastJob] = field(default_factory=list)
    learned: list[tuple[str, float, int]] = field(default_factory=list)
    gone: dict[tuple[str, str], datetime] = field(default_factory=dict)

    async def admit(self, new: NewJob) -> Admission:
        self.switch.check()
        bound = new.reservation
        if bound is not None:
            slot = (new.account, bound.route, bound.derived, bound.key)
            fingerprint, job_id = self.keys.setdefault(slot, (bound.fingerprint, new.id))
            if job_id != new.id:
                verdict = Verdict.REPLAYED if fingerprint == bound.fingerprint else Verdict.REUSED
                return Admission(verdict, self.rows[job_id])
        self._check_room(new)
        self.rows[new.id] = job = Job(
            id=new.id,
            account=new.account,
            status=Status.QUEUED,
            request=new.request,
            created_at=new.created_at,
            started_at=None,
            completed_at=None,
            run_at=new.created_at,
            deadline_at=new.deadline_at,
            retained_until=new.retained_until,
            epoch=0,
            crash_count=0,
            retry_count=0,
            sequence=0,
            stage=None,
            fraction=None,
            cancel_requested=False,
            cached=False,
            result=None,
            error=None,
            usage=Usage(),
        )
        return Admission(Verdict.ADMITTED, self.tell(job.id, "job.queued"))

    def _check_room(self, new: NewJob) -> None:
        jobs = sum(job.account == new.account and not job.status.terminal for job in self.rows.values())
        if new.queued_max is not None and jobs >= new.queued_max:
            if new.reservation is not None:
                bound = new.reservation
                del self.keys[new.account, bound.route, bound.derived, bound.key]
            raise AccountFull(jobs)

    def tell(self, job_id: str, event_type: str, **changes: Any) -> Job:
        """Append an event; the job takes the status that follows, and `changes`."""
        job = self.rows[job_id]
        status = STATUS_AFTER_EVENT.get(event_type, job.status)
        job = replace(job, sequence=job.sequence + 1, status=status, **changes)
        self.events.append(
            Event(
                id=new_id("evt"),
                account=job.account,
                job_id=job_id,
                sequence=job.sequence,
                type=event_type,
                at=job.created_at,
                body={"told": event_type},
                position=len(self.events) * 2 + 1,  # positions may skip
            )
        )
        self.rows[job_id] = job
        return job

    async def job(self, account: str, job_id: str) -> Job | None:
        self.switch.check()
        self.looks += 1
        job = self.rows.get(job_id)
        return job if job is not None and job.account == account else None

    async def gone_at(self, account: str, job_id: str) -> datetime | None:
        return self.gone.get((account, job_id))

    async def job_by_id(self, job_id: str) -> Job | None:
        self.switch.check()
        return self.rows.get(job_id)

    async def jobs(self, account: str, narrow: JobFilter, limit: int, before: str | None) -> list[Job]:
        self.asked.append(narrow)
        newest_first = [job for job in reversed(self.rows.values()) if job.account == account]
        if before is not None:
            ids = [job.id for job in newest_first]
            newest_first = newest_first[ids.index(before) + 1 :]
        return newest_first[:limit]

    async def queue_position(self, job: Job) -> int:
        return self.positions

    async def past_jobs(self, engine: str, within_seconds: float, limit: int) -> list[PastJob]:
        self.learned.append((engine, within_seconds, limit))
        return self.past[:limit]

    async def job_events(self, job_id: str, after: int, limit: int) -> list[Event]:
        self.switch.check()
        mine = (event for event in self.events if event.job_id == job_id)
        return [event for event in mine if (event.sequence or 0) > after][:limit]

    async def feed(self, account: str, after: int, limit: int) -> list[Event]:
        mine = (event for event in self.events if event.account == account)
        return [event for event in mine if event.position is not None and event.position > after][:limit]

    async def last_position(self) -> int:
        return max((event.position or 0 for event in self.events), default=0)

    async def cancel(self, account: str, job_id: str) -> tuple[CancelOutcome, Job] | None:
        job = await self.job(account, job_id)
        if job is None:
            return None
        if job.status.terminal:
            return CancelOutcome.FINISHED, job
        return CancelOutcome.CANCELED, self.tell(job_id, "job.canceled")

    async def mark_removed(self, account: str, job_id: str) -> bool:
        self.rows[job_id] = replace(self.rows[job_id], removed=True)
        return True

    async def counts(self) -> Mapping[tuple[str, str], int]:
        return {("queued", "cpu"): 3, ("processing", "cpu"): 2, ("completed", "cpu"): 9}

    async def oldest_queued(self, lane: str) -> datetime | None:
        queued = [job.created_at for job in self.rows.values() if job.status is Status.QUEUED]
        return min(queued, default=None)

    async def add_file(self, stored: StoredFile) -> None:
        self.switch.check()
        self.files[stored.id] = stored

    async def file(self, account: str, file_id: str) -> StoredFile | None:
        stored = self.files.get(file_id)
        return stored if stored is not None and stored.account == account else None


@dataclass
class FakeKeys:
    """`KeyStore`."""

    rows: dict[str, ApiKey] = field(default_factory=dict)
    touched: list[dict[str, datetime]] = field(default_factory=list)
    look_ups: int = 0
    hold: asyncio.Event | None = None  # while it is not set, a look-up that has read does not return
    reading: asyncio.Event = field(default_factory=asyncio.Event)

    async def add_key(self, key: ApiKey) -> None:
        self.rows[key.id] = key

    async def key_by_digest(self, digest: str) -> ApiKey | None:
        self.look_ups += 1
        found = next((key for key in self.rows.values() if key.digest == digest), None)
        self.reading.set()
        if self.hold is not None:
            await self.hold.wait()
        return found

    async def keys(self, account: str) -> Sequence[ApiKey]:
        return [key for key in self.rows.values() if key.account == account]

    async def revoke_key(self, account: str, key_id: str) -> bool:
        key = self.rows.get(key_id)
        if key is None or key.account != account:
            return False
        self.rows[key_id] = replace(key, revoked_at=key.created_at)
        return True

    async def touch_keys(self, last_used: dict[str, datetime]) -> None:
        self.touched.append(last_used)


@dataclass
class FakeAccounts:
    """`AccountStore`, as far as the API calls it."""

    rows: dict[str, Account] = field(default_factory=dict)
    spent: dict[str, float] = field(default_factory=dict)
    look_ups: int = 0

    def allow(self, account: str, **limits: Any) -> None:
        """Give an account these limits."""
        self.rows[account] = Account(id=account, created_at=datetime(2026, 1, 1, tzinfo=UTC), **limits)

    async def account(self, account: str) -> Account | None:
        self.look_ups += 1
        return self.rows.get(account)

    async def compute_seconds_today(self, account: str) -> float:
        self.look_ups += 1
        return self.spent.get(account, 0.0)


@dataclass
class FakeWebhooks:
    """`WebhookStore`, as far as the API calls it."""

    rows: list[tuple[Delivery, list[Attempt]]] = field(default_factory=list)
    groups: list[DeadGroup] = field(default_factory=list)
    looks: int = 0
    asked: list[Any] = field(default_factory=list)

    async def deliveries(
        self,
        account: str,
        *,
        status: DeliveryStatus | None,
        job_id: str | None,
        endpoint_id: str | None,
        limit: int,
        before: str | None,
    ) -> list[Delivery]:
        self.asked.append((status, job_id, endpoint_id))
        return self._page(account, limit, before)

    def _page(self, account: str, limit: int, before: str | None) -> list[Delivery]:
        found = [delivery for delivery, _ in self.rows if delivery.account == account]
        ids = [delivery.id for delivery in found]
        return found[ids.index(before) + 1 if before else 0 :][:limit]

    async def delivery(self, account: str, delivery_id: str) -> tuple[Delivery, list[Attempt]] | None:
        self.looks += 1
        return next(
            (row for row in self.rows if row[0].id == delivery_id and row[0].account == account), None
        )

    async def dead_groups(self, account: str) -> list[DeadGroup]:
        return self.groups

    async def count_dead(self, account: str, which: DeadFilter) -> int:
        self.asked.append(which)
        return len(self.rows)

    async def count_spent(self, account: str, which: DeadFilter) -> int:
        return sum(delivery.is_spent for delivery, _ in self.rows)

    async def dead_letters(
        self, account: str, which: DeadFilter, limit: int, before: str | None
    ) -> list[Delivery]:
        self.asked.append(which)
        return self._page(account, limit, before)

    async def redrive(self, account: str, which: DeadFilter, spacing_seconds: float) -> int:
        self.asked.append(spacing_seconds)
        return len(self.rows)

    async def discard(self, account: str, which: DeadFilter, reason: str) -> int:
        self.asked.append((which, reason))
        return len(which.delivery_ids)
