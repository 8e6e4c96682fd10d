"""Who is asking, and may they? By API key, or for one job by a read-only token."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, NoReturn, cast

from fastapi import Depends, Request

from tempa.api.parts import ApiParts, Parts
from tempa.api.rates import Rates
from tempa.core.accounts import DEFAULT_ACCOUNT, ApiKey, KeyStore, digest, is_key_text
from tempa.core.clock import Clock
from tempa.core.errors import Refusal, StoreUnavailable
from tempa.core.signing import verify_token

_CACHE_SECONDS = 5.0  # how long another process of the API may go on serving a key revoked here
_TOUCH_SECONDS = 60.0  # last_used_at is for people; a write for each request would be a flush for each


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose request this is. Nothing of another account is ever shown to it, unless it is the operator's."""

    account: str
    is_admin: bool = False

    @property
    def is_operator(self) -> bool:
        """Whether it may do what concerns all accounts: other accounts' `admin` keys have only their own."""
        return self.is_admin and self.account == DEFAULT_ACCOUNT


@dataclass(slots=True)
class KeyRing:
    """Looks keys up, remembers them briefly, and notes their use."""

    store: KeyStore
    clock: Clock
    _known: dict[str, tuple[ApiKey, float]] = field(default_factory=dict)
    _touched: dict[str, float] = field(default_factory=dict)
    _revocations: int = 0

    async def identify(self, text: str) -> ApiKey:
        """The key that `text` is. Raises `Refusal`: `malformed-key`, `unknown-key`, `revoked-key`."""
        if not is_key_text(text):
            _refuse("malformed-key", "This is not an API key: those begin with tempa_sk_.")
        key = await self._look_up(digest(text))
        if key is None:
            _refuse("unknown-key", "This API key is not known here.")
        if key.revoked_at is not None:
            _refuse("revoked-key", f"The API key {key.name!r} was revoked. Ask for a new one.")
        await self._touch(key)
        return key

    def forget(self, key_id: str) -> None:
        """A key was revoked: it must stop at once."""
        self._revocations += 1
        self._known = {hashed: entry for hashed, entry in self._known.items() if entry[0].id != key_id}

    async def _look_up(self, hashed: str) -> ApiKey | None:
        now = self.clock.monotonic()
        key, until = self._known.get(hashed, (None, 0.0))
        if key is not None and now < until:
            return key
        revocations = self._revocations
        key = await self.store.key_by_digest(hashed)
        # A look-up that a revocation overtook may carry what was true before it.
        if key is not None and key.revoked_at is None and revocations == self._revocations:
            self._known[hashed] = (key, now + _CACHE_SECONDS)
        return key

    async def _touch(self, key: ApiKey) -> None:
        now = self.clock.monotonic()
        if now < self._touched.get(key.id, float("-inf")) + _TOUCH_SECONDS:
            return
        self._touched[key.id] = now
        used: dict[str, datetime] = {key.id: self.clock.now()}
        with contextlib.suppress(StoreUnavailable):  # a nicety; the request itself may only read
            await self.store.touch_keys(used)


def requires(scope: str | None) -> Any:
    """A dependency: the caller, by an API key that has `scope` (None: by any key)."""

    async def caller(request: Request) -> Caller:
        return await _by_key(request, scope)

    return Depends(caller)


async def _job_reader(request: Request, parts: Parts) -> Caller:
    token = request.query_params.get("token")
    if token is None or "authorization" in request.headers:
        return await _by_key(request, "jobs:read")
    caller = await _by_token(request.path_params["job_id"], token, parts)
    await _rates(request).take(caller.account)
    return caller


async def _operator(request: Request) -> Caller:
    caller = await _by_key(request, "admin")
    if not caller.is_operator:
        detail = f"This concerns all accounts: it needs a key of the operator's own, {DEFAULT_ACCOUNT!r}."
        raise Refusal("operator-only", detail)
    return caller


JobsWriter = Annotated[Caller, requires("jobs:write")]
JobsReader = Annotated[Caller, requires("jobs:read")]
JobReader = Annotated[Caller, Depends(_job_reader)]  # jobs:read, or the token of the job in the path
WebhooksKeeper = Annotated[Caller, requires("webhooks")]
PaymentsKeeper = Annotated[Caller, requires("payments")]
Admin = Annotated[Caller, requires("admin")]
Operator = Annotated[Caller, Depends(_operator)]
Anyone = Annotated[Caller, requires(None)]  # anyone with a key


def key_ring(request: Request) -> KeyRing:
    """The key ring of the app that serves this request."""
    return cast("KeyRing", request.app.state.key_ring)


def _rates(request: Request) -> Rates:
    return cast("Rates", request.app.state.rates)


async def _by_key(request: Request, scope: str | None) -> Caller:
    key = await key_ring(request).identify(_bearer(request))
    await _rates(request).take(key.account)
    if scope is not None and not key.allows(scope):
        raise Refusal(
            "missing-scope",
            f"This call needs the scope {scope}; the API key {key.name!r} has {', '.join(key.scopes)}.",
            extra={"scope": scope},
        )
    return Caller(key.account, is_admin=key.allows("admin"))


async def _by_token(job_id: str, token: str, parts: ApiParts) -> Caller:
    subject = verify_token(parts.link_keys, token, parts.clock.now().timestamp())
    job = await parts.jobs.job_by_id(job_id) if subject == job_id else None
    if job is None:
        _refuse("invalid-token", "This token is not for this job, was altered, or has expired.")
    return Caller(job.account)


def _bearer(request: Request) -> str:
    headers = request.headers.getlist("authorization")
    if len(headers) != 1:
        _refuse("malformed-key", "Send one header: Authorization: Bearer <api key>.")
    kind, _, text = headers[0].partition(" ")
    if kind.lower() != "bearer":
        _refuse("malformed-key", "Authorization must be Bearer <api key>.")
    return text.strip()


def _refuse(slug: str, detail: str) -> NoReturn:
    raise Refusal(slug, detail, headers={"WWW-Authenticate": "Bearer"})
