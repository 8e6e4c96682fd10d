"""How fast a receiver that has just come back may be sent what was parked for it.

Ten thousand deliveries wait when an endpoint recovers, and nobody knows what it can take. A limit on
attempts in flight does not help: growing that from 1 to 64 had 23 % of the requests refused by a
receiver of 200/s (simulated), so what grows is a rate. It begins at 5/s and grows by half in each
window of half a second, like TCP's slow start, until the receiver refuses. Then it falls at once to 0.9 of
what the receiver was seen to take. From that ceiling on it feels its way: up by 2 % a window, or down by
twice the share that was refused in it. Should the endpoint fail wholly and come back once more, the ceiling
is remembered: growth is slow from there on.

A single refusal, or 1 % of them, holds a rate but does not make it fall: receivers fail now and then
without being full, and a rate that fell for each would never leave the bottom. And a rate that was not
used does not grow: where answers come late they would else drive it far past what they can tell of.

Times are Unix milliseconds, passed in.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

WINDOW_MS = 500
START_PER_SECOND = 5.0
RATE_MIN_PER_SECOND = 1.0
RATE_MAX_PER_SECOND = 2000.0  # beyond it the claims are the limit, not this

_GROWTH_FREE = 1.5  # a window, while nothing is known of a ceiling
_GROWTH_NEAR = 1.02  # a window, from the ceiling on
_CUT = 0.9  # of what was taken: the queue that built up at the receiver has to go too
_GENTLY = 2.0  # near the ceiling: by so many times the share that was refused
_NOISE_SHARE = 0.01
_USED_SHARE = 0.5  # answers to a rate that has just grown by half are still those to the one before
_SLACK_WINDOWS = 4  # one may be a stall of ours; so many in a row mean that nobody wants that much
LAG_MS = 20.0  # claims come some milliseconds late; a rate must not be lost by that


@dataclass(frozen=True, slots=True)
class Window:
    """What came back since a moment."""

    since: int
    taken: int = 0
    rejected: int = 0

    def counted(self, *, taken: bool) -> Window:
        """With one more answer."""
        return Window(self.since, self.taken + taken, self.rejected + (not taken))

    def __add__(self, later: Window) -> Window:
        return Window(self.since, self.taken + later.taken, self.rejected + later.rejected)

    def taken_per_second(self, now: int) -> float:
        """What the receiver was seen to take."""
        return 1000 * self.taken / (now - self.since)

    @property
    def is_full(self) -> bool:
        """Whether more was refused than happens to a receiver that could take more."""
        return self.rejected > 1 + _NOISE_SHARE * self.taken


@dataclass(frozen=True, slots=True)
class Pace:
    """The rate at which an endpoint may be sent attempts, and what the last two windows told of it."""

    rate_per_second: float
    ceiling_per_second: float | None  # from there on it grows slowly; None: never refused
    earlier: Window
    current: Window
    slack: int = 0  # windows in a row in which the rate was not used

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Pace:
        """What `as_dict` made."""
        windows = {name: Window(**stored[name]) for name in ("earlier", "current")}
        return cls(**{**stored, **windows})


def start(now: int, ceiling_per_second: float | None = None) -> Pace:
    """The pace of an endpoint that has just come back."""
    return Pace(START_PER_SECOND, ceiling_per_second, Window(now), Window(now))


def after(pace: Pace, now: int, *, taken: bool) -> Pace | None:
    """The pace after an attempt's answer; None when it is over: no longer needed, or past 2000/s."""
    if now < pace.current.since:  # the clock was set back: windows would not end until it catches up
        pace = replace(pace, earlier=Window(now), current=Window(now))
    pace = replace(pace, current=pace.current.counted(taken=taken))
    if not taken and _is_ramp(pace) and (pace.earlier + pace.current).is_full:
        pace = cut(pace, now)
    return pace if now - pace.current.since < WINDOW_MS else _next_window(pace, now)


def cut(pace: Pace, now: int) -> Pace:
    """The pace of an endpoint that turned out to be full, or failed again.

    It stays as it is within a window of the last cut: what is refused then was sent at the rate before.
    """
    if now - pace.earlier.since < WINDOW_MS:
        return pace
    rate = _below(pace, (pace.earlier + pace.current).taken_per_second(now))
    return Pace(rate, rate, Window(now), Window(now))


def _next_window(pace: Pace, now: int) -> Pace | None:
    ended, rate, ceiling = pace.current, pace.rate_per_second, pace.ceiling_per_second
    is_used = ended.taken + ended.rejected >= _USED_SHARE * rate * (now - ended.since) / 1000
    if ended.is_full and ended.since > pace.earlier.since:  # not the first since a cut
        gently = rate * (1 - _GENTLY * ended.rejected / (ended.taken + ended.rejected))
        rate = ceiling = max(gently, _below(pace, ended.taken_per_second(now)))
    elif is_used and not ended.rejected:
        rate = _grown(rate, ceiling)
    slack = 0 if is_used or ended.rejected else pace.slack + 1
    if slack >= _SLACK_WINDOWS or rate > RATE_MAX_PER_SECOND:
        return None
    return Pace(rate, ceiling, ended, Window(now), slack)


def _is_ramp(pace: Pace) -> bool:
    return pace.ceiling_per_second is None or pace.rate_per_second < pace.ceiling_per_second


def _below(pace: Pace, taken_per_second: float) -> float:
    return max(_CUT * min(taken_per_second, pace.rate_per_second), RATE_MIN_PER_SECOND)


def _grown(rate: float, ceiling: float | None) -> float:
    free = rate * _GROWTH_FREE
    if ceiling is None or free <= ceiling:
        return free
    return max(ceiling, rate * _GROWTH_NEAR)


def interval_ms(pace: Pace | None) -> float:
    """Between two starts. 0: any number may start."""
    return 1000 / pace.rate_per_second if pace else 0.0


def permits(ready_at: float, interval_ms: float, now: int) -> int | None:
    """How many attempts may start now; None: any number.

    `ready_at` is what `ready_after` gave last, 0 at first. This is the generic cell rate algorithm
    (ITU-T I.371), moved by its tolerance: a claim that comes up to `LAG_MS` late makes up for it.
    """
    if interval_ms <= 0:
        return None
    at = _bounded(ready_at, interval_ms, now)
    return 0 if now < at else int((now - at) / interval_ms) + 1


def ready_after(ready_at: float, interval_ms: float, now: int, starts: int) -> float:
    """When the next may start, after so many have started now: Unix milliseconds, with fractions."""
    return _bounded(ready_at, interval_ms, now) + interval_ms * starts


def _bounded(ready_at: float, interval_ms: float, now: int) -> float:
    """At most an interval from now, whatever a clock that was set back or an older pace left there."""
    return min(max(ready_at, now - LAG_MS), now + interval_ms)
