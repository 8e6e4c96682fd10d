"""Payments while a server dies: a development chain, quotes paid on it, a provider that tells of them.

One directory, many crashes, as in story.py: what has come of each payment is judged at the end, from outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import json
import os
import select
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import asyncpg
import httpx2
import standardwebhooks

from tempa.adapters.stores.postgres.connections import Address
from tempa.adapters.stores.postgres.store import PostgresStore
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core import base58
from tempa.core.clock import SystemClock
from tempa.settlement.journal import first_broken
from tempa.testing.devchain.payments import Payment, Rpc, pay
from tempa.testing.devchain.wallet import keypair
from tempa.wiring.credentials import write_private
from tests.chaos.house import House
from tests.chaos.returns import Returns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

SECRET = "whsec_" + "bWFya2V0" * 4
PRICE = 1_000  # base units a second
SECONDS = 3_600
PATIENCE_SECONDS = 60.0
_ROUND_SECONDS = 0.2
_LAPSE = "update inbox set leased = 0, next_at = 0 where state = 'pending' and leased = 1"


@dataclass
class Chain:
    """`tempa dev chain`, as a process: what it takes is final within some 10 ms."""

    folder: Path
    process: subprocess.Popen[bytes] | None = None
    ready: Mapping[str, str] = field(default_factory=dict)

    def __enter__(self) -> Self:
        file = self.folder / "chain.json"
        ports = ["--port", "0", "--ws-port", "0", "--control-port", "0", "--slot-ms", "10"]
        command = [sys.executable, "-m", "tempa", "dev", "chain", *ports, "--ready-file", str(file), "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], PATIENCE_SECONDS)[0], "it never came up"
        self.process.stdout.readline()
        self.ready = json.loads(file.read_text())
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(PATIENCE_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def key_file(self) -> Path:
        """The treasury's key, as `solana-keygen` writes it."""
        write_private(path := self.folder / "treasury.json", keypair("wallet", "treasury").to_json())
        return path

    def pay(self, amount: int, reference: str | None = None) -> str:
        """From the funded wallet, in the chain's mint; the signature."""
        told = {"to": self.ready["treasury"], "asset": self.ready["mint"], "amount": amount}
        return pay(Rpc(self.ready["rpc_url"]), Payment.of({**told, "reference": reference}))

    def balance(self, wallet: str | None = None) -> int:
        """What a wallet holds of the mint, by the chain; the treasury, if none is named."""
        told = wallet or self.ready["treasury"], {"mint": self.ready["mint"]}, {"encoding": "jsonParsed"}
        found = Rpc(self.ready["rpc_url"]).call("getTokenAccountsByOwner", *told)
        accounts = [row["account"]["data"]["parsed"]["info"]["tokenAmount"] for row in found["value"]]
        return sum(int(account["amount"]) for account in accounts)


class MarketHouse(House):
    """One process on SQLite; on PostgreSQL one that takes calls and one that settles. All of them die."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.store_url is not None:
            self.processes = [
                self._process("api", "serve", "--roles", "api,janitor", "--port", "0"),
                self._process("settler", "serve", "--roles", "settler", "--port", "0"),
            ]

    def kill(self) -> None:
        """Kill -9 to each."""
        for process in self.processes:
            process.kill()


@dataclass
class Sale:
    """A quote that was paid, by one payment."""

    quote_id: str
    signature: str
    amount: int


@dataclass
class Market:
    """A server in `folder`, its customers, and a provider who tells of each payment until he is answered 200.

    `hasten`: leases of the dead run out at once. Else PostgreSQL's settlers wait for 35 s, as they must.
    """

    folder: Path
    store_url: str | None = None
    hasten: bool = True
    sales: list[Sale] = field(default_factory=list)
    gifts: list[tuple[str, int]] = field(default_factory=list)  # payments that name no quote
    given: dict[str, str] = field(default_factory=dict)  # the quote that an operator gave one to
    untold: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    _deadline: float = 0.0

    def __enter__(self) -> Self:
        self._stack = contextlib.ExitStack()
        self.chain = self._stack.enter_context(Chain(self.folder))
        environment = {
            "TEMPA_SOLANA__RPC_URLS": json.dumps([self.chain.ready["rpc_url"]]),
            "TEMPA_SOLANA__TREASURY": self.chain.ready["treasury"],
            "TEMPA_SOLANA__MINTS": json.dumps([self.chain.ready["mint"]]),
            "TEMPA_SOLANA__SWEEP_SECONDS": "3600",
            "TEMPA_SOLANA__TIMEOUT_SECONDS": "2",
            "TEMPA_PAYMENTS__GENERIC__SECRET": SECRET,
            "TEMPA_PAYMENTS__GRACE_SECONDS": "0",
            "TEMPA_PAYMENTS__WARN_SECONDS": "1",
            "TEMPA_PAYMENTS__REFUND_KEYPAIR": str(self.chain.key_file()),
        }
        self.house = self._stack.enter_context(MarketHouse(self.folder, environment, self.store_url))
        self._numbers = itertools.count()
        self.returns = Returns(self)
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def crash(self, label: str, passage: int = 1) -> None:
        """Let it die at this passage of this label. Asserts that it does, by its own SIGKILL."""
        stir, settings = _STEPS.get(label.partition(".")[0], (Market.trade, {}))
        self._deadline = time.monotonic() + PATIENCE_SECONDS
        self._let_lapse()
        serves = self.house.start(f"{label}:{passage}", settings)
        while serves and not self.house.wait_for_death(_ROUND_SECONDS):
            self.check_patience(label)
            with contextlib.suppress(httpx2.HTTPError, _NotNow):  # lost with the server: asked again later
                stir(self)

    def strike(self, seconds: float) -> None:
        """Kill -9 all of it so long after it serves, while payments come in."""
        self._let_lapse()
        self.house.start()
        with ThreadPoolExecutor(1) as pool:
            trading = pool.submit(self._trade_until_dead)
            self.house.wait_for_death(seconds)  # nobody dies by himself: a random moment
            self.house.kill()
            trading.result()

    def _trade_until_dead(self) -> None:
        with contextlib.suppress(httpx2.HTTPError):
            while True:
                with contextlib.suppress(_NotNow):
                    self.trade()

    def open(self) -> None:
        """Start it, to live."""
        self._deadline = time.monotonic() + PATIENCE_SECONDS
        self.house.start()
        while self.get("/v1/payments/treasury")["is_known"] is not True:
            self.check_patience("the treasury")

    def check_patience(self, what: str) -> None:
        """Raises AssertionError when it has taken too long."""
        assert time.monotonic() < self._deadline, f"{what} did not come within {PATIENCE_SECONDS} s"

    # What customers, provider and operator do

    def trade(self) -> None:
        """A quote, its payment, word of it; and word of what never was."""
        self.untold.append(self._made_up())
        self.sell(SECONDS)
        self.tell()

    def sell(self, seconds: int) -> Sale:
        """A quote of a fresh instance, paid at once; nobody is told of it yet."""
        quote = self.quote(seconds)
        signature = self.chain.pay(int(quote["amount"]), quote["reference"])
        self.sales.append(Sale(quote["quote_id"], signature, int(quote["amount"])))
        self.untold.append(signature)
        return self.sales[-1]

    def tell(self) -> None:
        """Of all that he was not answered for yet, and once more of something else."""
        again = self.told[-1:]
        while self.untold or again:
            signature = self.untold[0] if self.untold else again.pop()
            answer = self.post(json.dumps({"signature": signature}))
            assert answer.status_code in {200, 503}, answer.text
            if answer.status_code == 503:
                raise _NotNow
            if self.untold:
                self.told.append(self.untold.pop(0))

    def post(self, body: str) -> httpx2.Response:
        """As the provider does, signed."""
        name, now = f"msg_{os.getpid()}_{next(self._numbers)}", datetime.now(UTC)
        headers = {
            "webhook-id": name,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": standardwebhooks.Webhook(SECRET).sign(name, now, body),
        }
        with self.house.http() as http:
            return http.post("/v1/payments/ingress/generic", content=body.encode(), headers=headers)

    def _made_up(self) -> str:
        return base58.encode(hashlib.sha512(f"nothing {next(self._numbers)}".encode()).digest())

    def hide(self) -> None:
        """A payment that no provider tells of: the sweep has to find it."""
        self.sell(SECONDS)
        self.untold.remove(self.sales[-1].signature)

    def let_end(self) -> None:
        """A rental of a second."""
        self.sell(1)
        self.tell()

    def give(self) -> None:
        """Money for no quote; the operator tries it again, then gives it to a quote."""
        amount = 50_000 + next(self._numbers)
        signature = self.chain.pay(amount)
        self.gifts.append((signature, amount))
        self.untold.append(signature)
        self.tell()
        self._give_all()

    def _give_all(self) -> None:
        """What a dead server has not answered may have been done, and is done if it was not."""
        for signature, _ in self.gifts:
            if signature not in self.given:
                self.given[signature] = str(self.quote(SECONDS)["quote_id"])
            for anomaly in self.open_of(signature):
                with self.house.http() as http:
                    path = f"/v1/payments/anomalies/{anomaly['id']}"
                    assert http.post(f"{path}/redrive").status_code == 200
                    words = {"resolution": "by hand", "quote_id": self.given[signature]}
                    answer = http.post(f"{path}/resolve", json=words)
                    assert answer.status_code == 200, answer.text

    def open_of(self, signature: str) -> list[dict[str, Any]]:
        """What of it waits for a person."""
        found = self.get(f"/v1/payments/{signature}")["anomalies"]
        return [one for one in found if one["reason"] == "no_reference" and one["resolved_at"] is None]

    def quote(self, seconds: int) -> dict[str, Any]:
        """Of a fresh instance."""
        asset = self.chain.ready["mint"]
        with self.house.http() as http:
            price = {"asset": asset, "amount": str(PRICE), "seconds": 1}
            made = http.post("/v1/gpu-instances", json={"name": "H200", "prices": [price]})
            assert made.status_code == 201, made.text
            asked = {"gpu_instance_id": made.json()["id"], "asset": asset, "seconds": seconds}
            answer = http.post("/v1/rentals/quotes", json=asked)
        if answer.status_code == 503:  # it does not know its treasury yet
            raise _NotNow
        assert answer.status_code == 201, answer.text
        quote: dict[str, Any] = answer.json()
        return quote

    def get(self, path: str) -> dict[str, Any]:
        """What stands there."""
        with self.house.http() as http:
            answer = http.get(path)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    # The end

    def finish(self) -> None:
        """Start it once more, tell of what is untold, wait until all is booked, and look at everything."""
        self._let_lapse()
        self.house.start(settings={**_SWEEPING, **_REFUNDING})
        self.tell()
        for sale in self.sales:
            self.wait_for(sale.quote_id, sale.amount)
        for signature, amount in self.gifts:
            while self._waiting(signature):
                self.check_patience("a gift")
                self._give_all()
            self.wait_for(self.given[signature], amount)
        self.returns.finish()
        self._check_heard()
        self._check_ledger()
        assert self.house.stop() == 0
        asyncio.run(self._check_store())

    def _waiting(self, signature: str) -> bool:
        receipts = self.get(f"/v1/payments/{signature}")["receipts"]
        return not receipts or any(int(one["waiting"]) for one in receipts)

    def wait_for(self, quote_id: str, amount: int) -> None:
        """Until a quote is credited: exactly so much, and the time that this buys."""
        self._deadline = max(self._deadline, time.monotonic() + PATIENCE_SECONDS)
        while int((quote := self.get(f"/v1/rentals/quotes/{quote_id}"))["paid"]) < amount:
            self.check_patience(f"the credit of {quote_id}")
            assert not self.house.wait_for_death(_ROUND_SECONDS)
        assert quote["paid"] == str(amount)
        assert quote["granted_seconds"] == amount // PRICE

    def _check_heard(self) -> None:
        """What was answered 200 is in the inbox by the provider's own word."""
        for signature in self.told:
            heard = self.get(f"/v1/payments/{signature}")["heard"]
            assert "generic" in {one["source"] for one in heard}, f"{signature} was lost after its 200"

    def _check_ledger(self) -> None:
        """One line a payment, and all of them together are what the chain has."""
        credited: dict[str, int] = {}
        for line in self._lines():
            assert line["tx_signature"] not in credited, "credited twice"
            credited[line["tx_signature"]] = int(line["amount"])
        expected = {sale.signature: sale.amount for sale in self.sales} | dict(self.gifts)
        assert credited == expected
        assert sum(credited.values()) == self.chain.balance()

    def lines_of(self, signature: str) -> list[dict[str, Any]]:
        """Of the ledger."""
        return [line for line in self._lines() if line["tx_signature"] == signature]

    def _lines(self) -> Iterator[dict[str, Any]]:
        cursor: str | None = ""
        while cursor is not None:
            page = self.get(f"/v1/ledger?format=json&limit=200{cursor}")
            yield from page["items"]
            cursor = f"&cursor={page['next_cursor']}" if page["next_cursor"] else None

    async def _check_store(self) -> None:
        """The journal hangs together and sums to zero."""
        wake = InProcessWake()
        store: SqliteStore | PostgresStore
        if self.store_url is None:
            path = self.house.data_dir / "tempa.db"
            store = await SqliteStore.open(path, clock=SystemClock(), wake=wake)
        else:
            store = await PostgresStore.open(Address(self.store_url), wake=wake)
        try:
            assert first_broken(await store.journal(0, 100_000)) is None
            assert sum((await store.balances()).values()) == 0
        finally:
            await store.close()

    def _let_lapse(self) -> None:
        if self.hasten and self.store_url is not None:
            asyncio.run(_execute(self.store_url, _LAPSE))


class _NotNow(Exception):  # noqa: N818 - it says what is the case
    """The server cannot do it at this moment."""


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


_SWEEPING, _REFUNDING = {"TEMPA_SOLANA__SWEEP_SECONDS": "1"}, {"TEMPA_PAYMENTS__REFUNDS": "true"}
_STEPS: dict[str, tuple[Callable[[Market], None], dict[str, str]]] = {
    "cursor": (Market.hide, _SWEEPING),
    "sweep": (Market.hide, _SWEEPING),
    "rentals": (Market.let_end, {}),
    "suspense": (Market.give, {}),
    "refund": (lambda market: market.returns.send_back(), _REFUNDING),
}
