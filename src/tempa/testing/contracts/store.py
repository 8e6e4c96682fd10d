"""The whole contract of a store: jobs, webhooks, settlement, keys and accounts in one object."""

from __future__ import annotations

from tempa.testing.contracts.accounts import AccountContract, ComputeContract, QueuedMaxContract
from tempa.testing.contracts.admission import AdmissionContract, ClientKeyContract, DerivedKeyContract
from tempa.testing.contracts.attempts import BeatContract, ClaimContract, SettleContract
from tempa.testing.contracts.bench import Store, StoreBench
from tempa.testing.contracts.bound_jobs import BoundJobContract, RentalEndContract
from tempa.testing.contracts.breaker import BreakerContract, GoneContract, ProbeContract
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
from tempa.testing.contracts.delivery_retention import NoticeRetentionContract, PayloadContract
from tempa.testing.contracts.delivery_room import DeliveryRoomContract
from tempa.testing.contracts.endpoints import EndpointDeliveryContract, EndpointRegistryContract
from tempa.testing.contracts.equal_work import FinishedTwinContract, SingleFlightContract
from tempa.testing.contracts.estimates import EstimateContract
from tempa.testing.contracts.event_log import EventLogContract, FeedContract
from tempa.testing.contracts.fairness import FairClaimContract, RunningMaxContract
from tempa.testing.contracts.fan_out import FanOutContract
from tempa.testing.contracts.fencing import FencingContract, TakeoverContract
from tempa.testing.contracts.healing import ExpireContract, HealContract, NoticeContract
from tempa.testing.contracts.jobs import (
    CancelContract,
    DeadlineContract,
    LookingContract,
    RetentionContract,
)
from tempa.testing.contracts.keys import KeyContract
from tempa.testing.contracts.moved_endpoints import LateAnswerContract, NewBeginningContract
from tempa.testing.contracts.outcomes import OutcomesAtOnceContract
from tempa.testing.contracts.pacing import EndpointLimitContract, RecoveryPaceContract
from tempa.testing.contracts.retention import PruneBoundContract, PruneJobsContract, TombstoneContract
from tempa.testing.contracts.second_rounds import OvertakenContract, OwedContract
from tempa.testing.contracts.settlement_histories import HistoryContract
from tempa.testing.contracts.settlement_inbox import InboxContract
from tempa.testing.contracts.settlement_ledger import JournalContract, LedgerContract
from tempa.testing.contracts.settlement_posting import PostingContract, PriceContract
from tempa.testing.contracts.settlement_quotes import QuoteContract
from tempa.testing.contracts.settlement_refunds import ActContract, PlaceContract, RefundContract
from tempa.testing.contracts.settlement_rentals import ExpiryContract, OneRenterContract
from tempa.testing.contracts.settlement_suspense import SuspenseContract
from tempa.testing.contracts.told_of_others import ToldOfOthersContract

__all__ = [
    "AccountStoreContract",
    "JobStoreContract",
    "KeyStoreContract",
    "SettlementStoreContract",
    "Store",
    "StoreBench",
    "WebhookStoreContract",
]


class JobStoreContract(
    AdmissionContract,
    ClientKeyContract,
    DerivedKeyContract,
    QueuedMaxContract,
    ComputeContract,
    EstimateContract,
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
    BoundJobContract,
    RentalEndContract,
    RetentionContract,
    PruneJobsContract,
    PruneBoundContract,
    TombstoneContract,
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
    OutcomesAtOnceContract,
    DeliveryListContract,
    DeadLetterContract,
    RedriveContract,
    PruneContract,
    EndpointRegistryContract,
    EndpointDeliveryContract,
    BreakerContract,
    ProbeContract,
    GoneContract,
    EndpointLimitContract,
    RecoveryPaceContract,
    HealContract,
    OwedContract,
    OvertakenContract,
    ExpireContract,
    NoticeContract,
    ToldOfOthersContract,
    NewBeginningContract,
    LateAnswerContract,
    PayloadContract,
    NoticeRetentionContract,
):
    """Endpoints, deliveries and dead letters. Asks for the fixture `bench`."""


class SettlementStoreContract(
    InboxContract,
    QuoteContract,
    PostingContract,
    PriceContract,
    SuspenseContract,
    OneRenterContract,
    ExpiryContract,
    LedgerContract,
    JournalContract,
    HistoryContract,
    RefundContract,
    ActContract,
    PlaceContract,
):
    """The inbox, the ledger, quotes and rentals. Asks for the fixture `bench`."""


class KeyStoreContract(KeyContract):
    """API keys. Asks for the fixture `bench`."""


class AccountStoreContract(AccountContract):
    """Accounts. Asks for the fixture `bench`."""
