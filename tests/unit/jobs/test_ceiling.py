"""How many jobs an account may have: what the store is told, what the client is told, what is counted."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from tempa.core.accounts import Account, AccountFull
from tempa.core.allowances import Allowances
from tempa.core.errors import Refusal
from tempa.core.limits import Limits
from tempa.jobs.ceiling import Ceiling, Spent
from tempa.jobs.intake import Addresses, Intake
from tempa.jobs.model import Admission, NewJob, Verdict
from tempa.testing.clock import ManualClock
from tests.unit.jobs.samples import NOW, Tally, a_job, a_request


class FullStore:
    """A store with room for so many jobs, which also keeps accounts."""

    def __init__(self, room: int = 0, spent_seconds: float = 0.0, **limits: Any) -> None:
        self.room = room
        self.spent_seconds = spent_seconds
        self.asked: list[NewJob] = []
        self._account = Account(id="acme", created_at=NOW, **limits)

    async def admit(self, new: NewJob) -> Admission:
        self.asked.append(new)
        if new.queued_max is not None and len(self.asked) > self.room:
            raise AccountFull(self.room)
        return Admission(Verdict.ADMITTED, a_job(id=new.id, request=new.request))

    async def account(self, account: str) -> Account | None:
        return self._account if account == "acme" else None

    async def compute_seconds_today(self, account: str) -> float:
        return self.spent_seconds


def an_intake(store: FullStore, meter: Tally, **defaults: Any) -> Intake:
    clock, limits = ManualClock(NOW), Limits(**defaults)
    engine = type("Engine", (), {"deterministic": True})
    return Intake(
        store=cast("Any", store),
        clock=clock,
        engines={"echo": cast("Any", engine)},
        limits=limits,
        addresses=Addresses(),
        meter=meter,
        retention_days=30,
        allowances=Allowances(cast("Any", store), clock, limits),
    )


async def told(store: FullStore, account: str = "acme", **defaults: Any) -> tuple[int | None, Tally]:
    """The bound that the store was given, and what was counted."""
    meter = Tally()
    with contextlib.suppress(Refusal):
        await an_intake(store, meter, **defaults).admit(account, "/v1", a_request(), None)
    return store.asked[-1].queued_max, meter


@pytest.mark.parametrize(
    ("own", "default", "bound"),
    [(None, None, None), (None, 9, 9), (4, 9, 4), (12, 9, 12), (0, 9, 0), (4, None, 4)],
)
async def test_an_accounts_own_limit_goes_before_the_settings(
    own: int | None, default: int | None, bound: int | None
) -> None:
    defaults: dict[str, Any] = {} if default is None else {"account_queued_max": default}
    assert (await told(FullStore(5, queued_max=own), **defaults))[0] == bound


async def test_an_account_that_is_not_known_has_the_settings_limit() -> None:
    assert (await told(FullStore(5, queued_max=4), "somebody", account_queued_max=9))[0] == 9


@pytest.mark.parametrize(("spent_seconds", "bound"), [(0.0, 4), (59.9, 4), (60.0, 0), (61.0, 0)])
async def test_a_spent_day_leaves_room_for_none(spent_seconds: float, bound: int) -> None:
    store = FullStore(5, spent_seconds, queued_max=4, compute_seconds_per_day=60.0)
    assert (await told(store))[0] == bound


async def test_what_was_refused_is_counted() -> None:
    _, meter = await told(FullStore(queued_max=0))
    assert meter.counted == {"tempa_jobs_refused_total": 1}


@pytest.mark.parametrize(
    ("now", "seconds"),
    [
        (datetime(2026, 2, 28, 23, 59, 59, tzinfo=UTC), 1),
        (datetime(2026, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC), 1),
        (datetime(2026, 3, 1, tzinfo=UTC), 86_400),
        (datetime(2026, 3, 1, 1, 30, tzinfo=UTC) + timedelta(milliseconds=1), 81_000),
    ],
)
def test_midnight_is_that_of_utc_and_never_a_moment_too_early(now: datetime, seconds: int) -> None:
    refusal = Ceiling(0, Spent(1.0, 1.0)).refusal(AccountFull(0), now)
    retry_after = int(refusal.headers["Retry-After"])

    assert retry_after == seconds
    assert (now + timedelta(seconds=retry_after)).date() > now.date()
