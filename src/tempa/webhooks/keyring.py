"""Signing secrets at rest: sealed with AES-GCM (NIST SP 800-38D), each for its endpoint alone."""

from __future__ import annotations

import base64
import secrets as randomness
from functools import lru_cache
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tempa.webhooks.rotation import in_force

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from tempa.webhooks.model import ClaimedDelivery, SealedSecret

_FORM = "1:"  # of what is stored: base64 of nonce and ciphertext
_NONCE_BYTES = 12
_KNOWN_MAX = 4096  # unsealed secrets in memory, some 300 bytes each


class SecretUnusable(Exception):  # noqa: N818 - it says what is the case
    """A stored secret cannot be opened, or none is in force: nothing can be signed for its endpoint."""


class Keyring:
    """Seals secrets, and knows which of them sign a delivery.

    The endpoint's id and its account are sealed along: a row that is copied to another endpoint opens
    nothing there. `key` has 32 bytes; `account_secrets` gives an account's own, newest first.
    """

    def __init__(self, key: bytes, account_secrets: Callable[[str], Sequence[str]]) -> None:
        self._cipher = AESGCM(key)
        self._account_secrets = account_secrets
        self._open = lru_cache(_KNOWN_MAX)(self._open_anew)

    def seal(self, secret: str, endpoint_id: str, account: str) -> str:
        """A secret as it may be stored."""
        nonce = randomness.token_bytes(_NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, secret.encode(), _owner(endpoint_id, account))
        return _FORM + base64.b64encode(nonce + sealed).decode()

    def unseal(self, sealed: str, endpoint_id: str, account: str) -> str:
        """The secret again. Raises SecretUnusable."""
        return self._open(sealed, endpoint_id, account)

    def of_endpoint(
        self, secrets: Iterable[SealedSecret], endpoint_id: str, account: str, now: datetime
    ) -> tuple[str, ...]:
        """Those of an endpoint's secrets that are in force, in the order given: newest first.

        Raises SecretUnusable, also when there are none: nothing is ever sent unsigned.
        """
        valid = [secret for secret in secrets if in_force(secret, now)]
        if not valid:
            raise SecretUnusable(f"the endpoint {endpoint_id} has no signing secret that is in force")
        return tuple(self.unseal(secret.sealed, endpoint_id, account) for secret in valid)

    def of_account(self, account: str) -> Sequence[str]:
        """What signs where there is no endpoint of its own: a job's `webhook_url`, a stream."""
        return self._account_secrets(account)

    def in_force(self, claimed: ClaimedDelivery, now: datetime) -> Sequence[str]:
        """What signs a delivery, newest first: its endpoint's own secrets, else its account's.

        Raises SecretUnusable.
        """
        account = claimed.message.account
        if not claimed.secrets:
            return self.of_account(account)
        return self.of_endpoint(claimed.secrets, claimed.endpoint_id, account, now)

    def _open_anew(self, sealed: str, endpoint_id: str, account: str) -> str:
        try:
            raw = base64.b64decode(sealed.removeprefix(_FORM), validate=True)
            nonce, text = raw[:_NONCE_BYTES], raw[_NONCE_BYTES:]
            return self._cipher.decrypt(nonce, text, _owner(endpoint_id, account)).decode()
        except (InvalidTag, ValueError):
            raise SecretUnusable(
                f"a signing secret of the endpoint {endpoint_id} cannot be opened: it was sealed under "
                "another master key (credentials.json), or elsewhere. Restore the key, or rotate the secret."
            ) from None


def _owner(endpoint_id: str, account: str) -> bytes:
    """An id has no slash: no other endpoint and account together read like these."""
    return f"{endpoint_id}/{account}".encode()
