"""What a deployment says of its ledger, signed: who keeps it can show later that it was told otherwise."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tempa.core.canonical import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

ALGORITHM = "Ed25519"


@dataclass(frozen=True, slots=True)
class Attestor:
    """Signs for one deployment. `seed`: 32 secret bytes."""

    seed: bytes

    def attest(self, statement: Mapping[str, Any]) -> dict[str, str]:
        """The signature over the RFC 8785 form of a statement, with the public key, both in Base64."""
        key = Ed25519PrivateKey.from_private_bytes(self.seed)
        return {
            "algorithm": ALGORITHM,
            "public_key": self.public_key,
            "signature": base64.b64encode(key.sign(canonical(statement))).decode("ascii"),
        }

    @property
    def public_key(self) -> str:
        """What checks it: give it to whom may want to check later."""
        key = Ed25519PrivateKey.from_private_bytes(self.seed).public_key()
        return base64.b64encode(key.public_bytes_raw()).decode("ascii")


def is_attested(statement: Mapping[str, Any], public_key: str, signature: str) -> bool:
    """Whether the key has signed this statement. Never raises for what is no key or no signature."""
    try:
        key = Ed25519PublicKey.from_public_bytes(_bytes(public_key))
        key.verify(_bytes(signature), canonical(statement))
    except (ValueError, RecursionError, InvalidSignature):
        return False
    return True


def _bytes(text: str) -> bytes:
    """Of Base64 in its one form: the unused bits of its last digit are 0."""
    data = base64.b64decode(text, validate=True)
    if base64.b64encode(data).decode("ascii") != text:
        raise ValueError("another text of the same bytes")
    return data
