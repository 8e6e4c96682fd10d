"""What the durable inbox costs the door: calls of `helius`, beside the same handler without storage.

Our own application is called in process, 64 calls at a time, each of a provider's real form: 90 % of the
signatures are known already, as providers repeat themselves. The other side differs in one thing: its store
says "taken" and keeps nothing.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from itertools import islice
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI

from bench.probes import weather
from bench.ratios import Goal, Pair, ratios
from bench.table import Row
from tempa.adapters.payments.helius import Helius
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.api import ingress, problems
from tempa.core.base58 import encode
from tempa.core.clock import SystemClock
from tempa.core.limits import Limits
from tempa.settlement.calls import Calls
from tempa.settlement.inbox import TakenIn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tempa.settlement.inbox import Incoming

SECRET = "bench"  # noqa: S105 - of this bench
AT_ONCE = 64
SINGLE_CALLS, ARRAY_CALLS, ARRAY = 3_000, 600, 25
DUPLICATES = 0.9


class Silent:
    """A meter that keeps nothing."""

    def count(self, name: str, amount: float = 1, **labels: str) -> None: ...
    def observe(self, name: str, seconds: float, **labels: str) -> None: ...
    def gauge(self, name: str, value: float, **labels: str) -> None: ...


class Nowhere:
    """A store that says that it has taken everything."""

    async def take_in(self, incoming: Incoming) -> TakenIn:
        return TakenIn(accepted=len(incoming.signatures))


class Parts:
    """What the route asks its application for."""

    def __init__(self, store: Any) -> None:
        self.clock, self.limits = SystemClock(), Limits()
        self.calls = Calls(
            store=store,
            clock=self.clock,
            meter=Silent(),
            sources={"helius": Helius()},
            secrets={"helius": (SECRET,)},
        )


def measure(folder: Path, *, rounds: int) -> list[Row]:
    """Rows of the table."""
    return asyncio.run(_measure(folder, rounds))


async def _measure(folder: Path, rounds: int) -> list[Row]:
    single, array, lost = [], [], 0
    ours_single, ours_array = [], []
    for number in range(rounds):
        store = await SqliteStore.open(
            folder / f"inbox-{number}.db", clock=SystemClock(), wake=InProcessWake()
        )
        calls, expected = _calls(SINGLE_CALLS, 1, seed=2 * number)
        before = weather(folder).flushes_per_second
        bare = await _rate(Nowhere(), calls)
        durable = await _rate(store, calls)
        flushes = (before, weather(folder).flushes_per_second)
        single.append(Pair(durable, bare, flushes))
        arrays, more = _calls(ARRAY_CALLS, ARRAY, seed=2 * number + 1)
        many = await _rate(store, arrays) * ARRAY
        array.append(Pair(many, durable, (flushes[1], weather(folder).flushes_per_second)))
        lost += len(expected | more) - (await store.pending_lookups())[0]
        ours_single.append(durable)
        ours_array.append(many)
        await store.close()
    return [
        Row("calls of one event a second, durable", ours_single),
        Row("... as a multiple of the handler without storage", ratios(single), Goal(0.5, at_least=True)),
        Row(f"events a second in arrays of {ARRAY}, 90 % known", ours_array),
        Row("... as a multiple of the rate of single events", ratios(array), Goal(5, at_least=True)),
        Row("lost", [lost], Goal(0, at_least=False)),
    ]


def _calls(count: int, events: int, seed: int) -> tuple[Sequence[bytes], frozenset[str]]:
    """Bodies of calls, and the different signatures in them."""
    told = list(islice(_signatures(seed), count * events))
    bodies = [
        json.dumps([_event(signature) for signature in told[start : start + events]]).encode()
        for start in range(0, len(told), events)
    ]
    return bodies, frozenset(told)


def _signatures(seed: int) -> Iterator[str]:
    dice, known = random.Random(seed), [encode(b"\x05" * 32 + random.Random(seed).randbytes(32))]
    yield known[0]
    while True:
        if dice.random() >= DUPLICATES:
            known.append(encode(b"\x05" * 32 + dice.randbytes(32)))
            yield known[-1]
        else:
            yield dice.choice(known)


def _event(signature: str) -> dict[str, Any]:
    """As large as a provider's raw event of a small payment is."""
    keys = [encode(bytes([number]) * 32) for number in range(1, 7)]
    transaction = {"signatures": [signature], "message": {"accountKeys": keys, "instructions": []}}
    balances = list(range(1_000_000_000, 1_000_000_006))
    meta = {"err": None, "fee": 5000, "preBalances": balances, "postBalances": balances}
    return {"slot": 300_000_000, "blockTime": 1_790_000_000, "meta": meta, "transaction": transaction}


async def _rate(store: Any, bodies: Sequence[bytes]) -> float:
    """Calls a second."""
    app = FastAPI()
    app.include_router(ingress.router)
    problems.install(app)
    app.state.parts = Parts(store)
    waiting = iter(bodies)

    async def caller() -> None:
        for body in waiting:
            assert await _call(app, body) == 200

    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(caller())
    return len(bodies) / (time.perf_counter() - started)


async def _call(app: FastAPI, body: bytes) -> int:
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/v1/payments/ingress/helius",
        "raw_path": b"/v1/payments/ingress/helius",
        "root_path": "",
        "query_string": b"",
        "headers": [
            (b"authorization", SECRET.encode()),
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    status: list[int] = []
    given = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> dict[str, Any]:
        return next(given, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            status.append(message["status"])

    await app(scope, receive, send)
    return status[0]
