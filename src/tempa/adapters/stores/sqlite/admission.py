"""Admitting a job: key, job and first event in one transaction, or the job that already stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.admission import binds, key_columns, standing
from tempa.adapters.stores.commands.event_log import Entry, event_rows, log_topics
from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.sql import admitted_job, job_from, job_row
from tempa.core.accounts import AccountFull
from tempa.core.crash import crash_point
from tempa.core.work import lane_topic
from tempa.jobs import events
from tempa.jobs.model import Admission, Verdict

if TYPE_CHECKING:
    from tempa.adapters.stores.commands.flow import Flow
    from tempa.jobs.model import NewJob, Reservation


class AdmissionPart(Access):
    """`JobStore.admit`."""

    async def admit(self, new: NewJob) -> Admission:
        """Admit, replay or refuse `new`. Raises AccountFull."""
        return await self._write(admit, new, job_row(new))


def admit(new: NewJob, row: dict[str, Any]) -> Flow[Done[Admission]]:
    """Key, job and first event, or the job that already stands."""
    if new.reservation is not None:
        holding = yield from _holding(new.account, new.reservation)
        if holding is not None:
            return Done(holding)
    yield from _check_room(new)
    moment = yield MOMENT
    yield ASK.insert_job(**row, run_at=moment.now)
    if new.reservation is not None:
        yield ASK.bind_key(
            **key_columns(new.account, new.reservation),
            fingerprint=new.reservation.fingerprint,
            job_id=new.id,
            bound_at=moment.now,
        )
    entry = Entry("job.queued", events.queued(new.request))
    yield ASK.insert_event(
        event_rows(
            [entry], account=new.account, job_id=new.id, last=1, now=row["created_at"], event_id=new.event_id
        )
    )
    crash_point("admit.in_commit")
    job = admitted_job(new, moment.now)
    return Done(Admission(Verdict.ADMITTED, job), (lane_topic(new.request.lane), *log_topics(new.id)))


def _check_room(new: NewJob) -> Flow[None]:
    """Raises AccountFull. The one writer is in between: nobody else can take the place that is counted."""
    if new.queued_max is None:
        return
    jobs = yield ASK.open_jobs(account=new.account)
    if jobs >= new.queued_max:
        raise AccountFull(jobs)


def _holding(account: str, reservation: Reservation) -> Flow[Admission | None]:
    """The job that already stands under the key, if the key still binds."""
    key = key_columns(account, reservation)
    holder = yield ASK.key_holder(**key)
    if holder is None:
        return None
    moment = yield MOMENT
    if not binds(job_from(holder), moment.now, reservation):
        return None
    return standing(holder, reservation)
