"""GPU instances and who rents them until when."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tempa.settlement.model import InstanceStatus

if TYPE_CHECKING:
    from datetime import datetime

    from tempa.settlement.quotes import PriceOffer

GRANT_SECONDS_MAX = 100 * 365 * 86_400
"""What one quote can buy, and how far from now a rental can end: beyond, times leave the calendar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewInstance:
    """An instance to be rented out. Each price is in another asset."""

    id: str
    name: str
    prices: tuple[PriceOffer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rental:
    """An account's time on an instance, from its first second until the grace is over.

    `seconds` were granted in all; `quote_id` and `signature` are of the latest credit; `is_in_grace`: its
    expiry was noticed, and it may be prolonged still.
    """

    gpu_instance_id: str
    account: str
    started_at: datetime
    expires_at: datetime
    seconds: int
    is_in_grace: bool
    quote_id: str
    signature: str
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuInstance:
    """An instance as it stands. `rental` is its latest, ended ones too; None: it was never rented."""

    id: str
    name: str
    prices: tuple[PriceOffer, ...]
    created_at: datetime
    suspended_at: datetime | None
    rental: Rental | None

    @property
    def renter(self) -> str | None:
        """Who rents it, until the grace is over."""
        return None if self.rental is None or self.rental.ended_at else self.rental.account

    def status(self, now: datetime) -> InstanceStatus:
        """Its status at `now`: an expiry counts from its very second, noticed or not."""
        if self.suspended_at is not None:
            return InstanceStatus.SUSPENDED
        if self.rental is None:
            return InstanceStatus.AVAILABLE
        if self.rental.ended_at is not None:
            return InstanceStatus.EXPIRED
        if self.rental.is_in_grace or self.rental.expires_at <= now:
            return InstanceStatus.GRACE
        return InstanceStatus.ACTIVE


class ActKind(StrEnum):
    """What an operator does to an instance."""

    ADDED = "added"
    PRICED = "priced"
    SUSPENDED = "suspended"
    RESUMED = "resumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceAct:
    """What an operator did to an instance, and behind which entry of the journal. `prices`: set by it."""

    number: int
    gpu_instance_id: str
    kind: ActKind
    prices: tuple[PriceOffer, ...] | None
    after_entry: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Expired:
    """What a look for expiries found: rentals that were warned of, came into grace, and ended."""

    warned: int = 0
    in_grace: int = 0
    ended: int = 0
