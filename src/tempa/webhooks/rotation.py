"""Which signing secrets an endpoint has once a new one is there."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from tempa.webhooks.model import SealedSecret

SECRETS_MAX = 5  # each is a signature in the headers of every attempt
OVERLAP_SECONDS = 86_400
OVERLAP_SECONDS_MAX = 604_800


def rotated(
    secrets: Iterable[SealedSecret], fresh: SealedSecret, overlap_seconds: float, now: datetime
) -> tuple[SealedSecret, ...]:
    """`fresh` first, then those before it, newest first, each to the end of its overlap at the latest.

    An earlier rotation may have given one less time: it gets no more. Without an overlap all of them go
    at once, for a secret that became known.
    """
    end = now + timedelta(seconds=overlap_seconds)
    older = [replace(secret, expires_at=min(secret.expires_at or end, end)) for secret in secrets]
    return (fresh, *(secret for secret in older if in_force(secret, now)))[:SECRETS_MAX]


def in_force(secret: SealedSecret, now: datetime) -> bool:
    """Whether deliveries are signed with it."""
    return secret.expires_at is None or now < secret.expires_at
