"""Admitting a job: key, job and first event in one transaction, or the job that already stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.sql import job_from, job_row
from tempa.adapters.stores.sqlite.access import SQL, Access
from tempa.adapters.stores.sqlite.event_log import Entry, append, log_topics
from tempa.adapters.stores.sqlite.writer import Done
from tempa.core.clock import to_ms
from tempa.core.work import lane_topic
from tempa.jobs import events
from tempa.jobs.model import Admission, Status, Verdict

if TYPE_CHECKING:
    import sqlite3

    from tempa.jobs.model import Job, NewJob, Reservation

KEY_LIFE_MS = 24 * 3600 * 1000  # how long a client's key outlives its job (CONTRACTS section 2)


class AdmissionPart(Access):
    """`JobStore.admit`."""

    async def admit(self, new: NewJob) -> Admission:
        """Admit, replay or refuse `new`."""
        row = job_row(new)
        return await self._write(lambda connection: _admit(connection, new, row, self._now()))


def _admit(connection: sqlite3.Connection, new: NewJob, row: dict[str, Any], now: int) -> Done[Admission]:
    reservation = new.reservation
    if reservation is not None:
        holder = SQL.key_holder(connection, **_key(new.account, reservation))
        if holder is not None and _binds(job_from(holder), now, reservation):
            return Done(_standing(holder, reservation))
    SQL.insert_job(connection, **row)
    if reservation is not None:
        _bind(connection, new, reservation, now)
    entry = Entry("job.queued", events.queued(new.request))
    append(
        connection,
        [entry],
        account=new.account,
        job_id=new.id,
        last=1,
        now=row["created_at"],
        event_id=new.event_id,
    )
    job = job_from(SQL.job_by_id(connection, job_id=new.id))
    topics = (lane_topic(new.request.lane), *log_topics(new.id))
    return Done(Admission(Verdict.ADMITTED, job), topics)


def _binds(holder: Job, now: int, reservation: Reservation) -> bool:
    """Whether the key still stands for `holder`. It never stands for a job that answers 410."""
    if holder.completed_at is None:
        return True
    kept = now < to_ms(holder.retained_until) and holder.id != reservation.not_for
    if reservation.derived:
        return kept and not holder.removed and holder.status is Status.COMPLETED
    return kept and now < to_ms(holder.completed_at) + KEY_LIFE_MS


def _standing(holder: Any, reservation: Reservation) -> Admission:
    same = holder["fingerprint"] == reservation.fingerprint
    return Admission(Verdict.REPLAYED if same else Verdict.REUSED, job_from(holder))


def _bind(connection: sqlite3.Connection, new: NewJob, reservation: Reservation, now: int) -> None:
    SQL.bind_key(
        connection,
        **_key(new.account, reservation),
        fingerprint=reservation.fingerprint,
        job_id=new.id,
        bound_at=now,
    )


def _key(account: str, reservation: Reservation) -> dict[str, Any]:
    return {
        "account": account,
        "route": reservation.route,
        "derived": int(reservation.derived),
        "key": reservation.key,
    }
