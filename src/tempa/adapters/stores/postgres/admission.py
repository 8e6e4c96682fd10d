"""Admission at full speed: the keys, jobs and first events of many requests in one statement."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.admission import binds, key_columns, standing
from tempa.adapters.stores.commands.event_log import log_topics
from tempa.adapters.stores.commands.flow import ASK, MOMENT, Done, Sole
from tempa.adapters.stores.sql import admitted_job, encode, job_from, job_row
from tempa.core.accounts import AccountFull
from tempa.core.crash import crash_point
from tempa.core.work import lane_topic
from tempa.jobs import events
from tempa.jobs.model import Admission, Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping, Sequence

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.jobs.model import NewJob

Answer = Admission | AccountFull | None
"""None: somebody else's job has the key."""

_NO_KEY = {"route": None, "derived": None, "key": None, "fingerprint": None}


def same_key(new: NewJob) -> Hashable:
    """What two requests share if only one of them can be admitted."""
    if new.reservation is None:
        return new.id
    return new.account, new.reservation.route, new.reservation.derived, new.reservation.key


def admit_all(batch: Sequence[NewJob], now: int | None) -> Flow[Done[list[Answer]]]:
    """Admit all whose key is free and whose account has room. `now`: in tests, the time.

    Of an account with a limit only as many are tried as it has room for. What proves to be a replay takes
    none, and so the next ones are tried.
    """
    limited = {new.account for new in batch if new.queued_max is not None}
    jobs = yield from _count(limited)
    answers: dict[str, Answer] = {}
    line = list(batch)
    while line:
        tried, line = _within(jobs, line)
        if not tried:
            answers |= {new.id: AccountFull(jobs[new.account]) for new in line}
            break
        admit = ASK.admit([_row(ordinal, new, now) for ordinal, new in enumerate(tried)])
        rows = yield admit if limited else Sole(admit)
        run_at = {row["id"]: row["run_at"] for row in rows}
        answers |= {new.id: _admitted(new, run_at) for new in tried}
        jobs.update(new.account for new in tried if new.id in run_at)
    crash_point("admit.in_commit")
    topics = {topic for new in batch if isinstance(answers[new.id], Admission) for topic in _topics(new)}
    return Done([answers[new.id] for new in batch], tuple(topics))


def _count(limited: Collection[str]) -> Flow[Counter[str]]:
    """How many jobs each account with a limit has; nobody else admits for these until we have."""
    if not limited:
        return Counter()
    accounts = encode(list(limited))
    yield ASK.lock_admissions(accounts=accounts)
    rows = yield ASK.open_jobs(accounts=accounts)
    return Counter({row["account"]: row["jobs"] for row in rows})


def _within(jobs: Counter[str], line: Sequence[NewJob]) -> tuple[list[NewJob], list[NewJob]]:
    """Those that there is room for if all of them are new, and the others; in their order."""
    jobs = jobs.copy()
    tried: list[NewJob] = []
    rest: list[NewJob] = []
    for new in line:
        fits = new.queued_max is None or jobs[new.account] < new.queued_max
        (tried if fits else rest).append(new)
        jobs[new.account] += fits
    return tried, rest


def _admitted(new: NewJob, run_at: Mapping[str, int]) -> Admission | None:
    if new.id not in run_at:
        return None
    return Admission(Verdict.ADMITTED, admitted_job(new, run_at[new.id]))


def _topics(new: NewJob) -> tuple[str, ...]:
    return lane_topic(new.request.lane), *log_topics(new.id)


def look_up(new: NewJob) -> Flow[Admission | None]:
    """The job that stands under the request's key. None: the key has lapsed since."""
    if new.reservation is None:
        return None
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
