"""A served API that takes payments, and the usual steps with it. Tests are the settler."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import httpx2

from tempa.core.accounts import ApiKey, digest, hint, new_secret_key
from tempa.core.clock import SystemClock
from tempa.core.ids import new_id
from tempa.settlement.model import Treasury
from tempa.settlement.quoting import Quoting
from tempa.testing.contracts.bench import StoreBench
from tempa.testing.contracts.settlement_steps import CLUSTER, LAMPORTS, MINT, TOKENS, pay
from tests.integration.api.conftest import SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tempa.settlement.model import Receipt
    from tests.integration.api.conftest import Served

INSTANCES, QUOTES = "/v1/gpu-instances", "/v1/rentals/quotes"
PRICES = [
    {"asset": "SOL", "amount": "500000000", "seconds": 3_600},
    {"asset": MINT, "amount": "7200", "seconds": 3_600},
]
"""Half a SOL an hour, or two base units of the token a second."""


@dataclass
class Renting:
    """What lies behind the API, to be changed under it. `treasury` is what its watch sees."""

    served: Served
    treasury: Treasury | None = None
    known: Treasury = field(default_factory=lambda: Treasury(cluster=CLUSTER, accounts=(LAMPORTS, TOKENS)))

    def __post_init__(self) -> None:
        self.treasury = self.known
        self.lock_for(900)

    async def _now(self, seconds: float) -> Treasury | None:
        assert seconds > 0
        return self.treasury

    def lock_for(self, seconds: float, *, takes_payments: bool = True) -> None:
        """Quotes from now on have their price for so long."""
        parts = self.served.app.state.parts
        quoting = Quoting(
            store=self.served.store,
            treasury=self._now if takes_payments else None,
            clock=parts.clock,
            lock_seconds=seconds,
        )
        self.served.app.state.parts = replace(parts, quoting=quoting)

    @asynccontextmanager
    async def client(self, *scopes: str, account: str = "default") -> AsyncIterator[httpx2.AsyncClient]:
        """A client with a key of its own; without scopes it may do all."""
        headers = {"Authorization": f"Bearer {await self.new_key(*scopes, account=account)}"}
        async with httpx2.AsyncClient(
            base_url=self.served.url, headers=headers, timeout=SECONDS, trust_env=False
        ) as client:
            yield client

    async def new_key(self, *scopes: str, account: str = "default") -> str:
        """Its secret."""
        secret = new_secret_key()
        key = ApiKey(
            id=new_id("key"),
            account=account,
            name="a key",
            hint=hint(secret),
            digest=digest(secret),
            scopes=scopes or ("admin",),
            created_at=SystemClock().now(),
        )
        await self.served.store.add_key(key)
        return secret

    async def pay(
        self, quote: dict[str, Any], amount: int, *, account: str = "default", **changes: Any
    ) -> Receipt:
        """A payment for a quote of `account`, in a block of now, is posted."""
        found = await self.served.store.quote(account, quote["quote_id"])
        assert found is not None
        return await pay(self.bench, found.offer, amount, **changes)

    @property
    def bench(self) -> StoreBench:
        """The store behind it, by its own clock."""
        wake = self.served.parts.wake
        return StoreBench(store=self.served.store, clock=cast("Any", SystemClock()), wake=wake)


async def offered(http: httpx2.AsyncClient) -> dict[str, Any]:
    """An instance that nobody has rented yet."""
    answer = await http.post(INSTANCES, json={"name": "H200", "prices": PRICES})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def quoted(
    http: httpx2.AsyncClient, gpu_instance_id: str, seconds: int, asset: str = MINT
) -> dict[str, Any]:
    """A quote of the account that asks."""
    body = {"gpu_instance_id": gpu_instance_id, "asset": asset, "seconds": seconds}
    answer = await http.post(QUOTES, json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made
