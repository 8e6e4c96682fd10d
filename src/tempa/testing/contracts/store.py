"""The whole contract of a store: `JobStore`, `WebhookStore` and `KeyStore` in one object."""

from __future__ import annotations

from tempa.testing.contracts.admission import AdmissionContract, ClientKeyContract, DerivedKeyContract
from tempa.testing.contracts.attempts import BeatContract, ClaimContract, SettleContract
from tempa.testing.contracts.bench import Store, StoreBench
from tempa.testing.contracts.dead_letters import (
    DeadLetterContract,
    DeliveryListContract,
    PruneContract,
    RedriveContract,
)
from tempa.testing.contracts.delays import DelayContract
from tempa.testing.contracts.deliveries import DeliveryOrderContract, DeliverySettleContract
from tempa.testing.contracts.delivery_claims import DeliveryClaimContract
from tempa.testing.contracts.delivery_due import DeliveryDueContract
from tempa.testing.contracts.delivery_room import DeliveryRoomContract
from tempa.testing.contracts.equal_work import FinishedTwinContract, SingleFlightContract
from tempa.testing.contracts.event_log import EventLogContract, FeedContract
from tempa.testing.contracts.fairness import FairClaimContract, RunningMaxContract
from tempa.testing.contracts.fan_out import FanOutContract
from tempa.testing.contracts.fencing import FencingContract, TakeoverContract
from tempa.testing.contracts.jobs import (
    CancelContract,
    DeadlineContract,
    LookingContract,
    RetentionContract,
)
from tempa.testing.contracts.keys import KeyContract

__all__ = ["JobStoreContract", "KeyStoreContract", "Store", "StoreBench", "WebhookStoreContract"]


class JobStoreContract(
    AdmissionContract,
    ClientKeyContract,
    DerivedKeyContract,
    ClaimContract,
    FairClaimContract,
    RunningMaxContract,
    BeatContract,
    SettleContract,
    DelayContract,
    FencingContract,
    TakeoverContract,
    SingleFlightContract,
    FinishedTwinContract,
    CancelContract,
    LookingContract,
    DeadlineContract,
    RetentionContract,
    EventLogContract,
    FeedContract,
):
    """Jobs and their events. Asks for the fixture `bench`."""


class WebhookStoreContract(
    FanOutContract,
    DeliveryClaimContract,
    DeliveryRoomContract,
    DeliveryDueContract,
    DeliveryOrderContract,
    DeliverySettleContract,
    DeliveryListContract,
    DeadLetterContract,
    RedriveContract,
    PruneContract,
):
    """Deliveries and dead letters. Asks for the fixture `bench`."""


class KeyStoreContract(KeyContract):
    """API keys. Asks for the fixture `bench`."""
