"""Endpoints that an account registers: what may be asked of one, and the secrets it is given."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from tempa.core.errors import Problem, Refusal
from tempa.core.ids import is_id, new_id
from tempa.core.shapes import shape_problems, whole
from tempa.core.signing import new_secret
from tempa.webhooks.ed25519 import new_private_key, public_key_of
from tempa.webhooks.endpoint_views import endpoint_view, public_key_view
from tempa.webhooks.keyring import SecretUnusable
from tempa.webhooks.model import EndpointChange, NewEndpoint, SealedSecret, Signing
from tempa.webhooks.wire import ChangeEndpoint, RegisterEndpoint, RotateSecret

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tempa.core.clock import Clock
    from tempa.core.limits import Limits
    from tempa.webhooks.keyring import Keyring
    from tempa.webhooks.model import Endpoint
    from tempa.webhooks.ports import WebhookStore

_logger = logging.getLogger(__name__)

_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """The registry, as its owners work with it. Answers are views; `check_url` says why a URL is refused.

    All raise `Refusal`: `not-found` for what is not the account's, `conflict` for what jobs have brought here
    and nobody registered, `invalid-request` with all that is wrong, `address-not-allowed`.
    """

    store: WebhookStore
    keyring: Keyring
    clock: Clock
    limits: Limits
    check_url: Callable[[str], str | None]

    async def register(self, account: str, document: Any) -> dict[str, Any]:
        """A new endpoint, with its secret: the only time that is shown."""
        asked = self._read(document, RegisterEndpoint)
        endpoint_id, signing = new_id("ep"), Signing(asked.signing)
        secret = _new_secret(signing)
        new = NewEndpoint(
            id=endpoint_id,
            account=account,
            signing=signing,
            secrets=(self._sealed(secret, endpoint_id, account),),
            **_columns(asked.model_dump(exclude={"signing"})),
        )
        endpoint = await self.store.add_endpoint(new, self.limits.endpoints_per_account)
        if endpoint is None:
            most = self.limits.endpoints_per_account
            message = f"The account has {most} endpoints, as many as it may have. Remove one first."
            raise Refusal("invalid-request", message, (Problem("", message, most),))
        _logger.info("a webhook endpoint was registered", extra={"endpoint_id": endpoint_id})
        return self._with_secret(endpoint, secret)

    async def page(self, account: str, limit: int, before: str | None) -> list[dict[str, Any]]:
        """Registered ones, newest first."""
        return [self._view(one) for one in await self.store.endpoints(account, limit, before)]

    async def look(self, account: str, endpoint_id: str) -> dict[str, Any]:
        """One of them; a job's URL too."""
        return self._view(await self._found(account, endpoint_id))

    async def change(self, account: str, endpoint_id: str, document: Any) -> dict[str, Any]:
        """Change what is given, of a registered one."""
        await self._registered(account, endpoint_id)
        asked = self._read(document, ChangeEndpoint)
        change = EndpointChange(values=_columns(asked.model_dump(include=asked.model_fields_set)))
        return self._view(_kept(await self.store.change_endpoint(account, endpoint_id, change), endpoint_id))

    async def rotate(self, account: str, endpoint_id: str, document: Any) -> dict[str, Any]:
        """A new secret, shown once; those before it sign too until the overlap is over."""
        found = await self._registered(account, endpoint_id)
        asked = self._read(document, RotateSecret)
        secret = _new_secret(found.signing)
        fresh = self._sealed(secret, endpoint_id, account)
        rotated = await self.store.rotate_endpoint(account, endpoint_id, fresh, asked.overlap_seconds)
        _logger.info("a webhook endpoint has a new secret", extra={"endpoint_id": endpoint_id})
        return self._with_secret(_kept(rotated, endpoint_id), secret)

    async def pause(self, account: str, endpoint_id: str) -> dict[str, Any]:
        """Park what comes for a registered one."""
        await self._registered(account, endpoint_id)
        return self._view(_kept(await self.store.pause_endpoint(account, endpoint_id), endpoint_id))

    async def resume(self, account: str, endpoint_id: str) -> dict[str, Any]:
        """Send again, to a job's URL too."""
        await self._found(account, endpoint_id)
        return self._view(_kept(await self.store.resume_endpoint(account, endpoint_id), endpoint_id))

    async def remove(self, account: str, endpoint_id: str) -> None:
        """End a registered one; what waits there is canceled."""
        await self._registered(account, endpoint_id)
        if not await self.store.remove_endpoint(account, endpoint_id):
            raise _not_found(endpoint_id)
        _logger.info("a webhook endpoint was removed", extra={"endpoint_id": endpoint_id})

    async def test(self, account: str, endpoint_id: str) -> dict[str, Any]:
        """Send a registered one an event of its own."""
        await self._registered(account, endpoint_id)
        ids = await self.store.test_endpoint(account, endpoint_id)
        if ids is None:
            raise _not_found(endpoint_id)
        return {"delivery_id": ids[0], "event_id": ids[1]}

    async def public_keys(self, endpoint_id: str) -> dict[str, Any]:
        """The keys that verify what an Ed25519 endpoint is sent, newest first: a JSON Web Key Set.

        Each goes by its thumbprint (RFC 7638), which stays its own through rotations. Raises `Refusal`:
        `keys-unavailable` if they cannot be opened: an empty set would say that nothing verifies.
        """
        found = await self.store.endpoint_anywhere(endpoint_id) if is_id(endpoint_id) else None
        if found is None or found.signing is not Signing.ED25519:
            raise Refusal("not-found", f"There is no endpoint {endpoint_id[:80]} with public keys.")
        keys = self._public_keys(found)
        if not keys:
            detail = f"The keys of {found.id} cannot be opened here; the log says why."
            raise Refusal("keys-unavailable", detail, headers={"Cache-Control": "no-store"})
        return {"keys": [public_key_view(key) for key in keys]}

    def _read(self, document: Any, model: type[_Model]) -> _Model:
        """A body, with all that is wrong with it at once."""
        if not isinstance(document, dict):
            message = "The body must be a JSON object."
            raise _refused([Problem("", message)])
        problems, read = [], None
        try:
            read = model.model_validate({name: whole(value) for name, value in document.items()})
        except ValidationError as error:
            problems = shape_problems(error)
        url = document.get("url")
        why = self.check_url(url) if isinstance(url, str) else None
        blocked = [Problem("/url", why)] if why else []
        if blocked and not problems:
            raise Refusal("address-not-allowed", blocked[0].message, tuple(blocked))
        if read is None:
            raise _refused([*problems, *blocked])
        return read

    async def _found(self, account: str, endpoint_id: str) -> Endpoint:
        found = await self.store.endpoint(account, endpoint_id) if is_id(endpoint_id) else None
        return _kept(found, endpoint_id)

    async def _registered(self, account: str, endpoint_id: str) -> Endpoint:
        found = await self._found(account, endpoint_id)
        if found.of_jobs:
            raise Refusal(
                "conflict",
                f"{found.id} is not registered: jobs name it as their webhook_url, and the account's own "
                "secret signs. It can be looked at and resumed, and no more. POST /v1/webhooks/endpoints "
                "registers its URL; a job without webhook_url sends nothing there.",
            )
        return found

    def _sealed(self, secret: str, endpoint_id: str, account: str) -> SealedSecret:
        sealed = self.keyring.seal(secret, endpoint_id, account)
        return SealedSecret(sealed=sealed, created_at=self.clock.now())

    def _view(self, endpoint: Endpoint) -> dict[str, Any]:
        keys = self._public_keys(endpoint) if endpoint.signing is Signing.ED25519 else ()
        return endpoint_view(endpoint, keys[0] if keys else None)

    def _with_secret(self, endpoint: Endpoint, secret: str) -> dict[str, Any]:
        """What the receiver verifies with. A key that signs is shown to nobody."""
        shown = public_key_of(secret) if endpoint.signing is Signing.ED25519 else secret
        return {**self._view(endpoint), "secret": shown}

    def _public_keys(self, endpoint: Endpoint) -> Sequence[str]:
        """Newest first; none if they cannot be opened: whoever looks at an endpoint still sees the rest."""
        try:
            secrets = self.keyring.of_endpoint(
                endpoint.secrets, endpoint.id, endpoint.account, self.clock.now()
            )
        except SecretUnusable:
            _logger.exception("public keys cannot be shown", extra={"endpoint_id": endpoint.id})
            return ()
        return [public_key_of(secret) for secret in secrets]


def _new_secret(signing: Signing) -> str:
    return new_private_key() if signing is Signing.ED25519 else new_secret()


def _columns(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an endpoint, of those of a body that were given."""
    values = dict(asked)
    if "max_in_flight" in values:
        values["in_flight_max"] = values.pop("max_in_flight")
    if values.get("events") is not None:
        values["events"] = tuple(values["events"])
    if "retry_statuses" in values:
        values["retry_statuses"] = frozenset(values["retry_statuses"])
    return values


def _kept(endpoint: Endpoint | None, endpoint_id: str) -> Endpoint:
    if endpoint is None:
        raise _not_found(endpoint_id)
    return endpoint


def _not_found(endpoint_id: str) -> Refusal:
    return Refusal("not-found", f"There is no endpoint {endpoint_id[:80]} in this account.")


def _refused(problems: Sequence[Problem]) -> Refusal:
    count = len(problems)
    detail = f"{count} problems were found; all are listed." if count > 1 else problems[0].message
    return Refusal("invalid-request", detail, tuple(problems))
