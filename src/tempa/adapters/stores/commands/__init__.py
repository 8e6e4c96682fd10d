"""The commands of the four ports, written once for every database (see flow.py)."""

from __future__ import annotations

from tempa.adapters.stores.commands.accounts import AccountsPart
from tempa.adapters.stores.commands.attempts import AttemptsPart
from tempa.adapters.stores.commands.claims import ClaimsPart
from tempa.adapters.stores.commands.dead_letters import DeadLettersPart
from tempa.adapters.stores.commands.deliveries import DeliveriesPart
from tempa.adapters.stores.commands.delivery_retention import DeliveryRetentionPart
from tempa.adapters.stores.commands.endpoints import EndpointsPart
from tempa.adapters.stores.commands.estimates import EstimatesPart
from tempa.adapters.stores.commands.feed import FeedPart
from tempa.adapters.stores.commands.files import FilesPart
from tempa.adapters.stores.commands.jobs import JobsPart
from tempa.adapters.stores.commands.keys import KeysPart
from tempa.adapters.stores.commands.outcomes import OutcomesPart
from tempa.adapters.stores.commands.parking import ParkingPart
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
):
    """The four ports, but for `admit` and the way to the database."""
