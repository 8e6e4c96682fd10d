"""Whether an endpoint may be sent another attempt now, by what its row says once it is locked."""

from __future__ import annotations

from typing import Any

from tempa.webhooks.model import EndpointStatus
from tempa.webhooks.pace import permits, ready_after


def spacing_ms(endpoint: Any) -> float:
    """Between two attempts: by its owner's rate and by the pace of its recovery; the slower counts."""
    rate = endpoint["rate_per_second"]
    return max(endpoint["pace_ms"] or 0.0, 1000 / rate if rate else 0.0)


def permitted(endpoint: Any, now: int) -> int | None:
    """How many attempts its pace lets start now; None: any number."""
    return permits(endpoint["paced_at"], spacing_ms(endpoint), now)


class Gate:
    """One endpoint in one claim: what it admits, and when the next may come."""

    def __init__(self, endpoint: Any, now: int) -> None:
        self.endpoint, self._now = endpoint, now
        self._entered = 0
        self._is_open = endpoint["status"] == EndpointStatus.ACTIVE and endpoint["held_until"] <= now
        self._permitted = permitted(endpoint, now)

    def admits(self, in_flight: int) -> bool:
        """Whether one more may start, when `in_flight` were on their way before this claim.

        There may be fewer by now, as answers come at any time; not more, as claims come one by one.
        """
        at_once = 1 if self.endpoint["parked_at"] is not None else self.endpoint["in_flight_max"]
        has_pace = self._permitted is None or self._entered < self._permitted
        return self._is_open and has_pace and in_flight + self._entered < at_once

    def enter(self) -> None:
        """One starts."""
        self._entered += 1

    def leave(self) -> None:
        """One that entered did not start after all."""
        self._entered -= 1

    @property
    def paced_at(self) -> float:
        """When the next may start by the endpoint's pace."""
        spacing = spacing_ms(self.endpoint)
        before: float = self.endpoint["paced_at"]
        return ready_after(before, spacing, self._now, self._entered) if spacing else before
