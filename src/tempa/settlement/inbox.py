"""What was heard of payments and waits to be looked up on the chain: values of the inbox."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from tempa.settlement.ingress import Rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """One call of a provider, one message of a subscription, or one page of a sweep.

    - `raw`: its bytes, kept for people as long as something new was in it.
    - `signatures`: of transactions, well-formed.
    - `rejected`: its entries that held none: each becomes an anomaly.
    - `nonce`: the provider's own, which it never uses twice; None where it has none.
    - `is_urgent`: looked up before all that waits: it names a quote, and a flood of others is no reason to
      wait.
    """

    source: str
    raw: bytes
    signatures: tuple[str, ...]
    rejected: tuple[Rejected, ...] = ()
    nonce: str | None = None
    is_urgent: bool = False


@dataclass(frozen=True, slots=True)
class TakenIn:
    """What an `Incoming` came to. A replay has a nonce that was used before."""

    accepted: int = 0
    duplicates: int = 0
    is_replay: bool = False


class InboxState(StrEnum):
    """Of one signature as one source told of it."""

    PENDING = "pending"  # to be looked up, now or again
    CREDITED = "credited"  # all that it pays is in the ledger, in suspense at least
    TERMINAL = "terminal"  # nothing of it is in the ledger; money that is not taken stands in the anomalies


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxClaim:
    """A signature to look up. `attempts` are the lookups that a node's trouble has spoiled so far."""

    signature: str
    received_at: datetime
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxEnding:
    """What a lookup came to, where nothing is credited.

    - `state`: PENDING or TERMINAL.
    - `reason`: a code of `reasons`.
    - `detail`: for people: the trouble in a node's words.
    - `delay_seconds`: until the next lookup, of a pending one.
    - `spends_attempt`: whether it counts as a spoiled one.
    - `is_shown`: whether it stands in the anomalies until it is credited.
    """

    signature: str
    state: InboxState
    reason: str
    detail: str = ""
    delay_seconds: float = 0.0
    spends_attempt: bool = False
    is_shown: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxEntry:
    """A row of the inbox, as people see it."""

    source: str
    signature: str
    state: InboxState
    reason: str | None
    attempts: int
    received_at: datetime
    next_at: datetime | None  # of the next lookup; None once it is settled
    settled_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A stretch of an account's history that was not read yet: what is older than `before`, down to `floor`.

    - `before`: a signature, None for the newest there is; `slot`: where it lies.
    - `known`: was read once already, so it has to come there, unless something below `floor` does: a history
      that ends without it is not whole.
    """

    before: str | None
    slot: int
    floor: int
    known: str | None


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far an account's history was read, at finality: everything up to `slot` is in the inbox.

    But for `unread`, if there is such a stretch. `signature`: the newest that was read.
    """

    slot: int
    signature: str | None = None
    unread: Unread | None = None
