"""Accounts and API keys: who may do what. Keys are random, shown once, stored hashed."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

SCOPES = ("jobs:write", "jobs:read", "webhooks", "payments", "admin")
DEFAULT_ACCOUNT = "default"
NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"  # of an account: needs no quotes anywhere

RATE_MIN = 0.001  # requests a second, and weight: what is divided by it stays a number

_PREFIX = "tempa_sk_"
_PATTERN = re.compile(rf"{_PREFIX}[A-Za-z0-9_-]{{43}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key as the store knows it: never the secret itself."""

    id: str
    account: str
    name: str
    hint: str  # the first characters, so that people can tell keys apart
    digest: str
    scopes: tuple[str, ...]
    created_at: datetime
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None

    def allows(self, scope: str) -> bool:
        """Whether this key may make calls that need `scope`. `admin` may do all."""
        return scope in self.scopes or "admin" in self.scopes


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Whose jobs and keys: what it may ask for. `weight` is its share of the workers beside others.

    None: any number of jobs may run; for the three below, the default of the settings (`limits.account_*`).
    """

    id: str
    created_at: datetime
    weight: float = 1.0
    running_max: int | None = None
    queued_max: int | None = None  # jobs that wait or run
    requests_per_second: float | None = None
    compute_seconds_per_day: float | None = None


class AccountFull(Exception):  # noqa: N818 - it says what is the case
    """The account has as many jobs as it may (`NewJob.queued_max`), or more: this one was not admitted."""

    def __init__(self, jobs: int) -> None:
        super().__init__(f"{jobs} jobs wait or run")
        self.jobs = jobs


def is_account_name(text: str) -> bool:
    """Whether an account can have this name."""
    return re.fullmatch(NAME_PATTERN, text) is not None


def new_secret_key() -> str:
    """A new API key: 256 random bits behind a prefix that secret scanners can find."""
    return _PREFIX + secrets.token_urlsafe(32)


def is_key_text(text: str) -> bool:
    """Whether `text` has the form of an API key."""
    return _PATTERN.fullmatch(text) is not None


def digest(text: str) -> str:
    """What is stored of a key. A plain hash is enough for 256 random bits."""
    return hashlib.sha256(text.encode()).hexdigest()


def hint(text: str) -> str:
    """The part of a key that may be shown."""
    return text[: len(_PREFIX) + 6]


class KeyStore(Protocol):
    """Where keys are kept."""

    async def add_key(self, key: ApiKey) -> None: ...
    async def key_by_digest(self, digest: str) -> ApiKey | None: ...
    async def keys(self, account: str) -> Sequence[ApiKey]: ...
    async def revoke_key(self, account: str, key_id: str) -> bool: ...  # False: no such key
    async def touch_keys(self, last_used: dict[str, datetime]) -> None: ...  # key id -> when


class AccountStore(Protocol):
    """Where accounts are kept. One comes into being with its first key, or its first limit."""

    async def account(self, account: str) -> Account | None: ...
    async def accounts(self) -> Sequence[tuple[Account, float]]: ...  # with the compute seconds of today
    async def set_account(
        self, account: str, changes: Mapping[str, Any]
    ) -> Account: ...  # names and values of limits
    async def compute_seconds_today(self, account: str) -> float: ...  # since 00:00 UTC
