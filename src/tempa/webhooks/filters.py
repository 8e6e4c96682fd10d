"""What endpoints may ask to hear of, and whether an event is meant by that."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from tempa.core.events import FAMILIES, OPERATOR_EVENTS, TERMINAL_EVENTS

if TYPE_CHECKING:
    from collections.abc import Collection

VERBS = {"job.started": "started", **{name: name.removeprefix("job.") for name in TERMINAL_EVENTS}}
"""The job events that are told outside, each with the last part of its name there."""

SETTLEMENT_EVENTS = ("gpu_rental.credited", "gpu_rental.expiring", "gpu_rental.expired", "payment.unmatched")
_ANNOUNCED = ("started", "completed", "failed", "canceled")
_NAMES = (
    *(f"{family}.{verb}" for family in (*FAMILIES, "job") for verb in _ANNOUNCED),
    *SETTLEMENT_EVENTS,
    *OPERATOR_EVENTS,
)


def _family(name: str) -> str:
    return name.partition(".")[0]


EVENT_FILTERS = (*_NAMES, *(f"{family}.*" for family, _ in groupby(_NAMES, _family)))
"""What an endpoint's `events` may name: `job.*` and its like stand for whichever family a job is of."""


def wants(asked: Collection[str] | None, name: str, *, of_job: bool) -> bool:
    """Whether an event of this outside name is meant. None: how jobs end, whatever their families."""
    family, _, verb = name.partition(".")
    if asked is None:
        return of_job and f"job.{verb}" in TERMINAL_EVENTS
    aliases = (f"job.{verb}", "job.*") if of_job else ()
    return any(known in asked for known in (name, f"{family}.*", *aliases))
