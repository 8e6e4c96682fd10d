"""From finality to credit: a whole server beside an alpenglow chain, told by WebSocket or by the sweep alone.

Finality is seen on a subscription of our own to the same node; the credit is the time in the quote. Slots of
200 ms, a transaction is final one slot later; payments come at random, 1 in 100 ms in the mean.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from time import monotonic, time
from typing import TYPE_CHECKING, Any

import httpx2
import websockets

from bench.ratios import Goal, percentile
from bench.settlement.chain import dev_chain
from bench.table import Row
from tempa.testing.server import Server

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.settlement.chain import Running

PAYMENTS = 120
MEAN_SECONDS = 0.1
_PATIENCE_SECONDS = 120.0
_AMOUNT = 3_600


def measure(folder: Path, *, rounds: int) -> list[Row]:
    """Rows of the table. Milliseconds."""
    pushed, swept = list[float](), list[float]()
    for _ in range(rounds):
        pushed += _round(folder, push=True)
        swept += _round(folder, push=False)
    return [
        Row("by WebSocket: from final to credited, p50, ms", [percentile(pushed, 0.5)]),
        Row("... p99", [percentile(pushed, 0.99)], Goal(500, at_least=False), note=f"{len(pushed)} payments"),
        Row("by the sweep alone, p50, ms", [percentile(swept, 0.5)]),
        Row("... p99", [percentile(swept, 0.99)], Goal(30_000, at_least=False)),
    ]


def _round(folder: Path, *, push: bool) -> list[float]:
    with tempfile.TemporaryDirectory(dir=folder) as place, dev_chain(Path(place)) as chain:
        ready = chain.ready
        environment = {
            "TEMPA_SOLANA__RPC_URLS": json.dumps([ready["rpc_url"]]),
            "TEMPA_SOLANA__TREASURY": ready["treasury"],
            "TEMPA_SOLANA__MINTS": json.dumps([ready["mint"]]),
            **({"TEMPA_SOLANA__WS_URL": ready["ws_url"]} if push else {}),
        }
        server = Server(Path(place) / "data", environment).start()
        try:
            return asyncio.run(_Round(server.ready or {}, chain).run())
        finally:
            server.stop()


@dataclass
class _Round:
    server: Mapping[str, Any]
    chain: Running
    final_at: dict[str, float] = field(default_factory=dict)  # by signature, Unix seconds
    quotes: dict[str, str] = field(default_factory=dict)  # by signature

    async def run(self) -> list[float]:
        """Milliseconds of each payment."""
        headers = {"authorization": f"Bearer {self.server['api_key']}"}
        url = self.server["url"]
        async with httpx2.AsyncClient(base_url=url, headers=headers, trust_env=False) as client:
            offers = [await self._quote(client) for _ in range(PAYMENTS)]
            dice = random.Random(2)
            async with websockets.connect(self.chain.ready["ws_url"]) as line:
                hearing = asyncio.create_task(self._hear(line))
                for offer in offers:
                    await asyncio.sleep(dice.expovariate(1 / MEAN_SECONDS))
                    signature = await asyncio.to_thread(
                        self.chain.pay, self.chain.ready["mint"], _AMOUNT, offer["reference"]
                    )
                    self.quotes[signature] = offer["quote_id"]
                    await line.send(_subscribe(len(self.quotes), signature))
                    self._numbered = dict(enumerate(self.quotes, 1))
                await asyncio.wait_for(hearing, _PATIENCE_SECONDS)
            return [await self._waited(client, signature) for signature in self.quotes]

    async def _hear(self, line: Any) -> None:
        """Each notification names a subscription, whose number the answer to its request tells."""
        subscriptions: dict[int, int] = {}
        while len(self.final_at) < PAYMENTS:
            told = json.loads(await line.recv())
            if "id" in told:
                subscriptions[told["result"]] = told["id"]
            elif told.get("method") == "signatureNotification":
                number = subscriptions[told["params"]["subscription"]]
                self.final_at[self._numbered[number]] = time()

    async def _quote(self, client: httpx2.AsyncClient) -> dict[str, Any]:
        asset = self.chain.ready["mint"]
        prices = [{"asset": asset, "amount": "1", "seconds": 1}]
        made = await client.post("/v1/gpu-instances", json={"name": "bench", "prices": prices})
        asked = {"gpu_instance_id": made.json()["id"], "asset": asset, "seconds": _AMOUNT}
        answer = await client.post("/v1/rentals/quotes", json=asked)
        while answer.status_code == httpx2.codes.SERVICE_UNAVAILABLE:  # until the treasury is known
            await asyncio.sleep(0.1)
            answer = await client.post("/v1/rentals/quotes", json=asked)
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    async def _waited(self, client: httpx2.AsyncClient, signature: str) -> float:
        ends = monotonic() + _PATIENCE_SECONDS
        while (credited := await self._credited(client, signature)) is None:
            if monotonic() > ends:
                raise SystemExit(f"{signature} was not credited")
            await asyncio.sleep(0.05)
        return max(0.0, credited - self.final_at[signature]) * 1000

    async def _credited(self, client: httpx2.AsyncClient, signature: str) -> float | None:
        answer = await client.get(f"/v1/rentals/quotes/{self.quotes[signature]}")
        told = answer.raise_for_status().json()["credited"]
        return None if told is None else datetime.fromisoformat(told["at"]).timestamp()


def _subscribe(number: int, signature: str) -> str:
    options = {"commitment": "finalized"}
    call = {"jsonrpc": "2.0", "id": number, "method": "signatureSubscribe", "params": [signature, options]}
    return json.dumps(call)
