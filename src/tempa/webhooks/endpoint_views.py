"""What a client may see of registered endpoints: never a secret, but once."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any

from tempa.core.clock import rfc3339
from tempa.core.signing import PUBLIC_KEY_PREFIX
from tempa.webhooks.breaker import Health

if TYPE_CHECKING:
    from datetime import datetime

    from tempa.webhooks.model import Endpoint, SealedSecret


def endpoint_view(endpoint: Endpoint, public_key: str | None) -> dict[str, Any]:
    """An endpoint. `public_key`: of one with Ed25519."""
    return {
        "id": endpoint.id,
        "endpoint_id": endpoint.id,
        "url": endpoint.url,
        "events": None if endpoint.events is None else list(endpoint.events),
        "description": endpoint.description,
        "signing": str(endpoint.signing),
        "retry_statuses": sorted(endpoint.retry_statuses),
        "max_in_flight": endpoint.in_flight_max,
        "rate_per_second": endpoint.rate_per_second,
        "status": str(endpoint.status),
        "breaker": _breaker(endpoint),
        "parked_at": _time(endpoint.parked_at),
        "held_until": _time(endpoint.held_until),
        "pending": endpoint.pending,
        "secrets": [_secret(secret) for secret in endpoint.secrets],
        "public_key": public_key,
        "created_at": rfc3339(endpoint.created_at),
        "changed_at": rfc3339(endpoint.changed_at),
    }


def public_key_view(key: str) -> dict[str, Any]:
    """A `whpk_...` as a JSON Web Key (RFC 8037)."""
    raw = base64.b64decode(key.removeprefix(PUBLIC_KEY_PREFIX))
    x = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    return {"kty": "OKP", "crv": "Ed25519", "kid": _thumbprint(x), "x": x, "use": "sig", "alg": "EdDSA"}


def _thumbprint(x: str) -> str:
    """Of a key by what makes it: its required members in order, without white space (RFC 7638, RFC 8037)."""
    members = json.dumps({"crv": "Ed25519", "kty": "OKP", "x": x}, separators=(",", ":"))
    return base64.urlsafe_b64encode(hashlib.sha256(members.encode()).digest()).decode().rstrip("=")


def _breaker(endpoint: Endpoint) -> dict[str, Any]:
    health = Health.of(endpoint.health)
    return {
        "state": "open" if health.is_open else "closed",
        "failures_in_a_row": len(health.failed),
        "failed_probes": health.failed_probes,
        "next_probe_at": _time(endpoint.held_until) if health.is_open else None,
    }


def _secret(secret: SealedSecret) -> dict[str, Any]:
    return {"created_at": rfc3339(secret.created_at), "expires_at": _time(secret.expires_at)}


def _time(at: datetime | None) -> str | None:
    return None if at is None else rfc3339(at)
