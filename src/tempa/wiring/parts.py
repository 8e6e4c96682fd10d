"""Everything a Tempa process is made of, before any of it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tempa.core.accounts import AccountStore, KeyStore
from tempa.jobs.ports import JobStore
from tempa.settlement.ports import Guard, SettlementStore
from tempa.webhooks.ports import WebhookStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tempa.adapters.meters.prometheus import PrometheusMeter
    from tempa.core.clock import Clock
    from tempa.core.errors import TempaError
    from tempa.core.links import SignedLinks
    from tempa.core.roles import Role
    from tempa.core.work import Wake
    from tempa.jobs.ports import ArtifactStore, Engine, Fetch, Host
    from tempa.settlement.attestation import Attestor
    from tempa.webhooks.keyring import Keyring
    from tempa.webhooks.ports import Sender
    from tempa.wiring.chain import Payments
    from tempa.wiring.settings import Settings


class StoreWrites(Protocol):
    """What the store has written since it was opened."""

    commits: int
    commands: int
    failures: int


class Store(JobStore, WebhookStore, SettlementStore, KeyStore, AccountStore, Protocol):
    """The five ports in one, as the database adapters offer them."""

    @property
    def writes(self) -> StoreWrites: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The ports, each with its implementation. `server` makes them; `roles` and the API use them."""

    settings: Settings
    clock: Clock
    wake: Wake
    meter: PrometheusMeter
    jobs: JobStore
    webhooks: WebhookStore
    settlement: SettlementStore
    payments: Payments | None
    guard: Guard | None
    attestor: Attestor
    keys: KeyStore
    accounts: AccountStore
    artifacts: ArtifactStore
    engines: Mapping[str, Engine]
    withheld: Mapping[str, TempaError]
    host: Host
    sender: Sender
    fetch: Fetch
    links: SignedLinks
    link_keys: tuple[bytes, ...]
    keyring: Keyring
    allow_networks: Sequence[str]
    public_url: str
    store_writes: Callable[[], StoreWrites]
    upkeep: Sequence[Role]
