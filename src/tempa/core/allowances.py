"""What an account may ask for now: its own limits, else the settings'; looked up, and remembered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tempa.core.accounts import AccountStore
    from tempa.core.clock import Clock
    from tempa.core.limits import Limits

FRESH_SECONDS = 5.0  # as for keys: a limit that is changed holds everywhere within this
SPENT_FRESH_SECONDS = 1.0  # how far a spend cap may be overshot, beside what runs already
_REMEMBERED_MAX = 10_000  # accounts

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The limits of an account that hold at the door. None: any number."""

    queued_max: int | None = None
    requests_per_second: float | None = None
    compute_seconds_per_day: float | None = None


@dataclass(slots=True)
class _Memory(Generic[T]):
    """Answers by account, for a while. When one has become old, one caller asks anew; meanwhile it holds."""

    ask: Callable[[str], Awaitable[T]]
    clock: Clock
    seconds: float
    _known: dict[str, tuple[T, float]] = field(default_factory=dict)

    async def of(self, account: str) -> T:
        now = self.clock.monotonic()
        known = self._known.get(account)
        if known is not None and now < known[1]:
            return known[0]
        if known is not None:
            self._known[account] = (known[0], now + self.seconds)
        answer = await self.ask(account)
        if len(self._known) >= _REMEMBERED_MAX:
            self._known.clear()
        self._known[account] = (answer, now + self.seconds)
        return answer


class Allowances:
    """Limits in force, and what of them is used. `limits` are the defaults."""

    def __init__(self, store: AccountStore, clock: Clock, limits: Limits) -> None:
        self._store, self._limits = store, limits
        self._allowances = _Memory(self._look_up, clock, FRESH_SECONDS)
        self._spent = _Memory(store.compute_seconds_today, clock, SPENT_FRESH_SECONDS)

    async def of(self, account: str) -> Allowance:
        """The limits of an account."""
        return await self._allowances.of(account)

    async def spent_seconds(self, account: str) -> float:
        """The kernel seconds it has used since 00:00 UTC."""
        return await self._spent.of(account)

    async def _look_up(self, account: str) -> Allowance:
        found = await self._store.account(account)
        own = Allowance() if found is None else found
        limits = self._limits
        return Allowance(
            queued_max=_first(own.queued_max, limits.account_queued_max),
            requests_per_second=_first(own.requests_per_second, limits.account_requests_per_second),
            compute_seconds_per_day=_first(
                own.compute_seconds_per_day, limits.account_compute_seconds_per_day
            ),
        )


def _first(own: T | None, default: T | None) -> T | None:
    return default if own is None else own
