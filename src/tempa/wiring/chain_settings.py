"""Settings of the chain and of payments."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from tempa.core.base58 import is_address
from tempa.core.signing import secret_key
from tempa.settlement.model import SOL
from tempa.wiring.section import Section

PAYMENT_SOURCES = ("helius", "quicknode", "generic")
"""Who may post of payments, each with a secret of its own."""

_U64_MAX = 2**64 - 1


def _address(text: str) -> str:
    if not is_address(text):
        raise ValueError("must be an address: base58 of 32 bytes")
    return text


def _asset(text: str) -> str:
    return text if text == SOL else _address(text)


def _address_or_none(text: str) -> str:
    return _address(text) if text else text


Address = Annotated[str, AfterValidator(_address)]
OptionalAddress = Annotated[str, AfterValidator(_address_or_none)]
"""Empty where there is none."""
BaseUnits = Annotated[int, Field(ge=0, le=_U64_MAX)]
"""An amount; text of digits is taken too, as TOML's integers end at 2**63."""


class Mint(Section):
    """A token that is taken.

    `decimals`, `program` and `account` are read from the chain once if they are absent; written down here
    they are pinned. `extensions`: what a Token-2022 mint may have, by the names of the reference page.
    `dust`: what is less waits in suspense, in base units.
    """

    mint: Address
    decimals: int | None = Field(None, ge=0, le=255)
    program: Literal["spl-token", "token-2022"] | None = None
    account: Address | None = None
    extensions: tuple[str, ...] = ()
    dust: BaseUnits = 0


def _mint(given: Any) -> Any:
    return {"mint": given} if isinstance(given, str) else given


def _once(mints: tuple[Mint, ...]) -> tuple[Mint, ...]:
    if len({mint.mint for mint in mints}) < len(mints):
        raise ValueError("names a mint twice")
    return mints


def _apart(urls: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(urls)) < len(urls):
        raise ValueError("names a node twice: it would count twice where two have to agree")
    return urls


class Solana(Section):
    """The chain, and the treasury on it."""

    rpc_urls: Annotated[tuple[Annotated[str, Field(pattern=r"^https?://\S+$")], ...], AfterValidator(_apart)]
    ws_url: str = Field(pattern=r"^(wss?://\S+)?$")
    geyser_url: str = Field(pattern=r"^(https?://\S+)?$")
    commitment: Literal["finalized", "confirmed"]
    cluster: OptionalAddress
    treasury: OptionalAddress
    mints: Annotated[tuple[Annotated[Mint, BeforeValidator(_mint)], ...], AfterValidator(_once)]
    dust_lamports: BaseUnits
    quorum_nodes: int = Field(ge=1, le=16)
    quorum_above: dict[Annotated[str, AfterValidator(_asset)], BaseUnits]
    requests_per_second: float = Field(gt=0, le=100_000)
    timeout_seconds: float = Field(gt=0, le=60)
    lookups_max: int = Field(ge=1, le=1024)
    sweep_seconds: float = Field(ge=1, le=86_400)
    reconcile_seconds: float = Field(ge=1, le=86_400)

    @property
    def is_configured(self) -> bool:
        """Whether payments can be taken: somewhere to send them, and somebody to ask."""
        return bool(self.treasury and self.rpc_urls)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.treasury and not self.rpc_urls:
            raise ValueError("treasury is set, but no node to ask is: set solana.rpc_urls too")
        return self


class SourceSettings(Section):
    """One who may post of payments. Without a secret nothing of it is taken."""

    secret: str = Field(max_length=1024)
    previous_secret: str = Field(max_length=1024)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Those in force, the newest first."""
        return tuple(secret for secret in (self.secret, self.previous_secret) if secret)


def _signing(secret: str) -> str:
    if secret:
        secret_key(secret)  # what cannot be read would make each call of its a fault of ours
    return secret


class SigningSource(SourceSettings):
    """One that signs as Standard Webhooks do."""

    secret: Annotated[str, AfterValidator(_signing)]
    previous_secret: Annotated[str, AfterValidator(_signing)]


class Payments(Section):
    """How payments are heard of, looked up and turned into time."""

    helius: SourceSettings
    quicknode: SourceSettings
    generic: SigningSource
    guard_url: str = Field(pattern=r"^(rediss?://\S+)?$")
    not_found_after_seconds: float = Field(ge=0, le=86_400)
    max_transient_retries: int = Field(ge=0, le=50)
    quote_seconds: float = Field(ge=1, le=604_800)
    warn_seconds: float = Field(ge=0, le=2_592_000)
    grace_seconds: float = Field(ge=0, le=2_592_000)
    refunds: bool
    refund_keypair: str = Field(pattern=r"^(/.*)?$")

    def secrets_of(self, source: str) -> tuple[str, ...]:
        """Of one of PAYMENT_SOURCES."""
        settings: SourceSettings = getattr(self, source)
        return settings.secrets
