"""How often an account may call: a token bucket each, in this process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tempa.jobs.ceiling import too_many

if TYPE_CHECKING:
    from tempa.core.allowances import Allowances
    from tempa.core.clock import Clock

_BURST_SECONDS = 2.0
_BURST_MIN = 10.0  # a page that opens asks for several things at once
_BUCKETS_MAX = 10_000  # accounts; one that is forgotten starts with a full bucket


@dataclass(slots=True)
class Bucket:
    """Fills by `rate_per_second` up to `burst`; a call takes one."""

    tokens: float
    filled_at: float

    def take(self, now: float, rate_per_second: float, burst: float) -> float:
        """Take one; 0, or the seconds until there would be one."""
        self.tokens = min(burst, self.tokens + (now - self.filled_at) * rate_per_second)
        self.filled_at = now
        if self.tokens >= 1:
            self.tokens -= 1
            return 0.0
        return (1 - self.tokens) / rate_per_second


@dataclass(slots=True)
class Rates:
    """The buckets. Several processes of the API have each their own: an account's rate is for each."""

    allowances: Allowances
    clock: Clock
    _buckets: dict[str, Bucket] = field(default_factory=dict)

    async def take(self, account: str) -> None:
        """Let one request of the account in. Raises `Refusal`: `too-many-requests`."""
        rate = (await self.allowances.of(account)).requests_per_second
        if rate is None:
            return
        burst = max(_BURST_MIN, _BURST_SECONDS * rate)
        now = self.clock.monotonic()
        if account not in self._buckets and len(self._buckets) >= _BUCKETS_MAX:
            self._buckets.clear()
        wait_seconds = self._buckets.setdefault(account, Bucket(burst, now)).take(now, rate, burst)
        if wait_seconds > 0:
            raise too_many(
                f"The account makes more than {rate:g} requests a second, its limit requests_per_second "
                f"({burst:g} at once). Ask again later.",
                rate,
                wait_seconds,
            )
