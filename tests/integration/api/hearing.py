"""What providers post, made by hand, and an ingress that takes it."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import re
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx2
import standardwebhooks

from tempa.adapters.meters.prometheus import PrometheusMeter
from tempa.adapters.payments.generic import Generic
from tempa.adapters.payments.helius import Helius
from tempa.adapters.payments.quicknode import QuickNode
from tempa.core import base58
from tempa.settlement.calls import Calls

if TYPE_CHECKING:
    from tempa.settlement.anomalies import Anomaly
    from tempa.settlement.inbox import InboxEntry
    from tempa.settlement.ingress import Source
    from tempa.settlement.ports import Guard, SettlementStore
    from tests.integration.api.conftest import Served

SECRET = "whsec_" + "c2VjcmV0" * 4
PREVIOUS = "whsec_" + "b2xkb2xk" * 4
OTHER = "whsec_" + "b3RoZXJz" * 4
SOURCES: dict[str, Source] = {"helius": Helius(), "quicknode": QuickNode(), "generic": Generic()}
_numbers = itertools.count()


def a_signature() -> str:
    """One that no other test has."""
    return base58.encode(hashlib.sha512(next(_numbers).to_bytes(8, "big")).digest())


def as_json(document: Any) -> bytes:
    return json.dumps(document).encode()


def helius_headers(secret: str = SECRET) -> dict[str, str]:
    return {"authorization": secret}


def quicknode_headers(body: bytes, secret: str = SECRET, nonce: str | None = None) -> dict[str, str]:
    nonce, at = nonce or f"nonce-{next(_numbers)}", str(int(time.time()))
    mac = hmac.new(secret.encode(), nonce.encode() + at.encode() + body, hashlib.sha256).hexdigest()
    return {"x-qn-nonce": nonce, "x-qn-timestamp": at, "x-qn-signature": mac}


def generic_headers(body: bytes, secret: str = SECRET, name: str | None = None) -> dict[str, str]:
    """Signed by the standard's own library."""
    name, now = name or f"msg_{next(_numbers)}", datetime.now(UTC)
    made = standardwebhooks.Webhook(secret).sign(name, now, body.decode())
    stamp = str(int(now.timestamp()))
    return {"webhook-id": name, "webhook-timestamp": stamp, "webhook-signature": made}


def signed(source: str, body: bytes, secret: str = SECRET) -> dict[str, str]:
    """The headers by which a source's call is its own."""
    if source == "helius":
        return helius_headers(secret)
    return (quicknode_headers if source == "quicknode" else generic_headers)(body, secret)


def telling(source: str, *signatures: str) -> bytes:
    """A body of the source's shape that tells of these."""
    if source == "generic":
        return as_json({"signatures": list(signatures)})
    raw = [{"slot": 5, "transaction": {"message": {}, "signatures": [one]}} for one in signatures]
    return as_json(raw if source == "helius" else {"data": raw, "metadata": {}})


def metered(meter: PrometheusMeter) -> dict[tuple[str, str], int]:
    """Calls so far, by source and outcome."""
    text = meter.render()[0].decode()
    row = r'^tempa_settlement_calls_total\{outcome="(\w+)",source="(\w+)"\} ([0-9.]+)$'
    return {(source, outcome): int(float(n)) for outcome, source, n in re.findall(row, text, re.MULTILINE)}


def calls_into(
    store: SettlementStore, served: Served, guard: Guard | None = None
) -> tuple[Calls, PrometheusMeter]:
    meter = PrometheusMeter()
    secrets = dict.fromkeys(SOURCES, (SECRET, PREVIOUS))
    clock = served.parts.clock
    return Calls(store=store, clock=clock, meter=meter, sources=SOURCES, secrets=secrets, guard=guard), meter


@dataclass
class Ingress:
    """A running server whose three sources have a secret, and one from before."""

    served: Served
    client: httpx2.AsyncClient
    meter: PrometheusMeter

    @classmethod
    def of(cls, served: Served, store: SettlementStore | None = None, guard: Guard | None = None) -> Ingress:
        """`store`: another than the server's, in front of it."""
        calls, meter = calls_into(store or served.store, served, guard)
        served.app.state.parts = replace(served.parts, calls=calls)
        return cls(served, served.client(), meter)

    async def post(self, source: str, body: bytes, **headers: str) -> httpx2.Response:
        """`headers` by name, with _ for -; none: those of an authentic call."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        given = named or signed(source, body)
        return await self.client.post(f"/v1/payments/ingress/{source}", content=body, headers=given)

    async def tell(self, source: str, *signatures: str) -> httpx2.Response:
        return await self.post(source, telling(source, *signatures))

    async def inbox(self, signature: str) -> list[InboxEntry]:
        return await self.served.store.inbox_of(signature)

    async def anomalies(self) -> list[Anomaly]:
        return await self.served.store.anomalies(100, None)

    @property
    def counted(self) -> dict[tuple[str, str], int]:
        return metered(self.meter)


def taken(answer: httpx2.Response) -> tuple[int, int, int]:
    """Accepted, duplicates, rejected."""
    assert answer.status_code == 200, answer.text
    told = answer.json()
    return told["accepted"], told["duplicates"], told["rejected"]


def problem(answer: httpx2.Response) -> tuple[int, str]:
    """Status and kind of a refusal."""
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["type"].rpartition(":")[2]
