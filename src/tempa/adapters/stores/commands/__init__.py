"""The commands of the five ports, written once for every database (see flow.py)."""

from __future__ import annotations

from tempa.adapters.stores.commands.accounts import AccountsPart
from tempa.adapters.stores.commands.allocations import AllocationsPart
from tempa.adapters.stores.commands.anomalies import AnomaliesPart
from tempa.adapters.stores.commands.attempts import AttemptsPart
from tempa.adapters.stores.commands.claims import ClaimsPart
from tempa.adapters.stores.commands.dead_letters import DeadLettersPart
from tempa.adapters.stores.commands.deliveries import DeliveriesPart
from tempa.adapters.stores.commands.delivery_retention import DeliveryRetentionPart
from tempa.adapters.stores.commands.endpoints import EndpointsPart
from tempa.adapters.stores.commands.estimates import EstimatesPart
from tempa.adapters.stores.commands.feed import FeedPart
from tempa.adapters.stores.commands.files import FilesPart
from tempa.adapters.stores.commands.inbox import InboxPart
from tempa.adapters.stores.commands.jobs import JobsPart
from tempa.adapters.stores.commands.keys import KeysPart
from tempa.adapters.stores.commands.ledger import LedgerPart
from tempa.adapters.stores.commands.outcomes import OutcomesPart
from tempa.adapters.stores.commands.parking import ParkingPart
from tempa.adapters.stores.commands.quotes import QuotesPart
from tempa.adapters.stores.commands.refunds import RefundsPart
from tempa.adapters.stores.commands.rentals import RentalsPart
from tempa.adapters.stores.commands.retention import RetentionPart


class Commands(
    ClaimsPart,
    AttemptsPart,
    JobsPart,
    FeedPart,
    FilesPart,
    RetentionPart,
    DeliveriesPart,
    OutcomesPart,
    DeadLettersPart,
    ParkingPart,
    DeliveryRetentionPart,
    EndpointsPart,
    KeysPart,
    AccountsPart,
    EstimatesPart,
    InboxPart,
    LedgerPart,
    AllocationsPart,
    AnomaliesPart,
    QuotesPart,
    RentalsPart,
    RefundsPart,
):
    """The five ports, but for `admit` and the way to the database."""
