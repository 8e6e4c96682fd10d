"""What an idempotency key does at admission: it holds for a job, or it is free again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.sql import job_from
from tempa.core.clock import to_ms
from tempa.jobs.model import Admission, Status, Verdict

if TYPE_CHECKING:
    from tempa.jobs.model import Job, Reservation

KEY_LIFE_MS = 24 * 3600 * 1000  # how long a client's key outlives its job (CONTRACTS section 2)


def binds(holder: Job, now: int, reservation: Reservation) -> bool:
    """Whether the key still stands for `holder`. It never stands for a job that answers 410."""
    if holder.completed_at is None:
        return True
    kept = now < to_ms(holder.retained_until) and holder.id != reservation.not_for
    if reservation.derived:
        return kept and not holder.removed and holder.status is Status.COMPLETED
    return kept and now < to_ms(holder.completed_at) + KEY_LIFE_MS


def standing(holder: Any, reservation: Reservation) -> Admission:
    """The answer to a request whose key is taken: a replay, or a refusal if it asks for something else."""
    same = holder["fingerprint"] == reservation.fingerprint
    return Admission(Verdict.REPLAYED if same else Verdict.REUSED, job_from(holder))


def key_columns(account: str, reservation: Reservation) -> dict[str, Any]:
    """What names a key."""
    return {
        "account": account,
        "route": reservation.route,
        "derived": int(reservation.derived),
        "key": reservation.key,
    }
