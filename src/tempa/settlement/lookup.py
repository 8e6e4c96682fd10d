"""When a payment that could not be decided is looked up again, and whether a person is shown it. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tempa.settlement.inbox import InboxEnding, InboxState
from tempa.settlement.reasons import REASONS, Kind

if TYPE_CHECKING:
    from datetime import datetime
    from random import Random

    from tempa.settlement.inbox import InboxClaim
    from tempa.settlement.quorum import Held

_AGE_SHARE = 0.25  # a payment that is not final yet is asked for again after this part of its age
_SOONEST_SECONDS = 0.2  # half of what finality takes where it is quickest
_LATEST_SECONDS = 6 * 3600.0
_PERSON_SECONDS = 900.0  # a person has to act, or a node to come back: nothing is gained by asking often
_ALARM_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long lookups go on.

    - `not_found_after_seconds`: then a payment that no node shows stands in the anomalies, until it lands.
    - `transient_retries`: lookups that a node's trouble may spoil. Their pauses double twice each time:
      2, 8, 32, 128, 512 s at most, five of them within 15 minutes.
    """

    not_found_after_seconds: float = 60.0
    transient_retries: int = 5
    base_seconds: float = 2.0
    growth: float = 4.0


def again(claim: InboxClaim, held: Held, now: datetime, patience: Patience, rng: Random) -> InboxEnding:
    """What becomes of a lookup that decided nothing: it is looked up again, sooner or later."""
    kind = REASONS[held.reason].kind
    is_spent = claim.attempts >= patience.transient_retries
    pause, shown = _PERSON_SECONDS, True
    if kind is Kind.PENDING:
        age = max(0.0, (now - claim.received_at).total_seconds())
        pause = min(max(age * _AGE_SHARE, _SOONEST_SECONDS), _LATEST_SECONDS)
        shown = age >= patience.not_found_after_seconds
    elif kind is Kind.TRANSIENT and not is_spent:
        pause = rng.uniform(0.0, patience.base_seconds * patience.growth**claim.attempts)
        shown = False
    elif kind is Kind.ALARM:
        pause = _ALARM_SECONDS
    return InboxEnding(
        signature=claim.signature,
        state=InboxState.PENDING,
        reason=held.reason,
        detail=_detail(held),
        delay_seconds=max(pause, held.retry_after_seconds or 0.0),
        spends_attempt=kind is Kind.TRANSIENT and not is_spent,
        is_shown=shown,
    )


def _detail(held: Held) -> str:
    """Which nodes it is about."""
    return f"nodes: {', '.join(held.nodes)}" if held.nodes else ""
