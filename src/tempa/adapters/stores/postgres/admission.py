"""Admission at full speed: the keys, jobs and first events of many requests in one statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.admission import binds, key_columns, standing
from tempa.adapters.stores.commands.event_log import log_topics
from tempa.adapters.stores.commands.flow import ASK, MOMENT, Done
from tempa.adapters.stores.sql import admitted_job, encode, job_from, job_row
from tempa.core.work import lane_topic
from tempa.jobs import events
from tempa.jobs.model import Admission, Verdict

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.jobs.model import NewJob

_NO_KEY = {"route": None, "derived": None, "key": None, "fingerprint": None}


def same_key(new: NewJob) -> Hashable:
    """What two requests share if only one of them can be admitted."""
    if new.reservation is None:
        return new.id
    return new.account, new.reservation.route, new.reservation.derived, new.reservation.key


def admit_all(batch: Sequence[NewJob], now: int | None) -> Flow[Done[list[Admission | None]]]:
    """Admit all whose key is free. None: somebody else's job has it. `now`: in tests, the time."""
    rows = yield ASK.admit([_row(ordinal, new, now) for ordinal, new in enumerate(batch)])
    run_at = {row["id"]: row["run_at"] for row in rows}
    answers = [
        Admission(Verdict.ADMITTED, admitted_job(new, run_at[new.id])) if new.id in run_at else None
        for new in batch
    ]
    topics = {
        topic
        for new in batch
        if new.id in run_at
        for topic in (lane_topic(new.request.lane), *log_topics(new.id))
    }
    return Done(answers, tuple(topics))


def look_up(new: NewJob) -> Flow[Admission | None]:
    """The job that stands under the request's key. None: the key has lapsed since."""
    assert new.reservation is not None, "a request without a key is always admitted"
    holder = yield ASK.key_holder(**key_columns(new.account, new.reservation))
    if holder is None:
        return None
    moment = yield MOMENT
    if not binds(job_from(holder), moment.now, new.reservation):
        return None
    return standing(holder, new.reservation)


def _row(ordinal: int, new: NewJob, now: int | None) -> dict[str, Any]:
    body, announce = events.queued(new.request)
    reservation = new.reservation
    key = _NO_KEY if reservation is None else key_columns(new.account, reservation)
    return {
        **job_row(new),
        "ordinal": ordinal,
        "event_id": new.event_id,
        "body": encode(body),
        "announce": None if announce is None else encode(announce),
        **key,
        "account": new.account,
        "fingerprint": None if reservation is None else reservation.fingerprint,
        "not_for": None if reservation is None else reservation.not_for,
        "now": now,
    }
