"""The vectors that are published hold: by plain hmac, by RFC 8032's equation, and by our verifier."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tempa.webhooks import WebhookVerificationError, verify
from tests.unit.webhooks.test_ed25519 import holds

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference/webhook-signatures.md").read_text(encoding="utf-8")
(BLOCK,) = re.findall(r"^```json\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
VECTORS: list[dict[str, Any]] = json.loads(BLOCK)


def by_name(vector: dict[str, Any]) -> str:
    return str(vector["name"])


def matches(secret: str, entry: str, message: bytes) -> bool:
    version, _, value = entry.partition(",")
    key = base64.b64decode(secret.partition("_")[2])
    if (version, secret[:6]) == ("v1", "whsec_"):
        return base64.b64decode(value) == hmac.new(key, message, hashlib.sha256).digest()
    return (version, secret[:5]) == ("v1a", "whpk_") and holds(key, message, base64.b64decode(value))


@pytest.mark.parametrize("vector", VECTORS, ids=by_name)
def test_a_vector_comes_to_its_verdict(vector: dict[str, Any]) -> None:
    given = (vector["body"].encode(), vector["headers"], vector["secrets"])
    if vector["verdict"] == "ok":
        assert verify(*given, now=vector["now"]) == json.loads(vector["body"])
        return
    with pytest.raises(WebhookVerificationError) as caught:
        verify(*given, now=vector["now"])
    assert caught.value.reason == vector["verdict"]


@pytest.mark.parametrize("vector", VECTORS, ids=by_name)
def test_a_vector_is_signed_as_the_page_says(vector: dict[str, Any]) -> None:
    headers, body = vector["headers"], vector["body"].encode()
    message = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    entries = headers.get("webhook-signature", "").split(" ")
    signed = any(matches(secret, entry, message) for secret in vector["secrets"] for entry in entries)

    forged = vector["verdict"] in {"no_match", "missing_header", "malformed_header", "invalid_secret"}
    assert signed is not forged


def test_the_hex_of_the_first_vector_is_plain_hmac_of_the_whole_secret() -> None:
    (secret,), body = VECTORS[0]["secrets"], VECTORS[0]["body"].encode()

    assert (
        VECTORS[0]["headers"]["X-Webhook-Signature"] == hmac.new(secret.encode(), body, "sha256").hexdigest()
    )


def test_every_reason_has_a_vector() -> None:
    table = set(re.findall(r"`([a-z]+_[a-z_]+)`(?=[^|\n]*\| [^|]*\|$)", PAGE, flags=re.MULTILINE))
    named = {reason for reason in table if not reason.startswith("wh")}

    assert {vector["verdict"] for vector in VECTORS} == {"ok", *named}
