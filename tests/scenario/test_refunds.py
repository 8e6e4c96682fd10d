"""Money is sent back by a real server with the treasury's key; wherever it dies, nobody is paid twice."""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import httpx2
import pytest
from solders.keypair import Keypair

from tempa.cli.exits import USAGE
from tempa.testing.devchain.payments import Payment, Rpc, pay
from tempa.testing.server import StartFault
from tests.chaos.market import Chain, MarketHouse
from tests.services import fresh_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE_SECONDS = 60.0
REFUNDS = "/v1/payments/refunds"
LABELS = ("refund.signed", "refund.noted", "refund.sent")
LAMPORTS = 7_000_000
TOKENS = 5_000
OF_GENESIS = ["no_reference", "nothing_received"]  # the treasury's first SOL, and the account of its tokens
SLOT_MS = 50  # what is signed is good for 7.5 s
SLOW_SLOT_MS = 400  # for a minute: however busy the machine, a server is up again before
_ROUND_SECONDS = 0.2


@dataclass
class Desk:
    """A server that sends refunds, with a chain to send them on."""

    folder: Path
    store_url: str | None = None

    def __enter__(self) -> Self:
        self._stack = contextlib.ExitStack()
        self.chain = self._stack.enter_context(Chain(self.folder))
        self.key = self.chain.key_file()
        environment = {
            "TEMPA_SOLANA__RPC_URLS": json.dumps([self.chain.ready["rpc_url"]]),
            "TEMPA_SOLANA__TREASURY": self.chain.ready["treasury"],
            "TEMPA_SOLANA__MINTS": json.dumps([self.chain.ready["mint"]]),
            "TEMPA_SOLANA__SWEEP_SECONDS": "1",
            "TEMPA_PAYMENTS__REFUNDS": "true",
            "TEMPA_PAYMENTS__REFUND_KEYPAIR": str(self.key),
        }
        self.house = self._stack.enter_context(MarketHouse(self.folder, environment, self.store_url))
        self.rpc = Rpc(self.chain.ready["rpc_url"])
        self.control("/slot-time", slot_ms=SLOT_MS)
        self.house.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def pay_nobody(self, asset: str, amount: int) -> str:
        """A payment that names no quote: the anomaly in which it waits."""
        told = {"to": self.chain.ready["treasury"], "asset": asset, "amount": amount}
        signature = pay(self.rpc, Payment.of(told))
        return str(self.until(lambda: self._waiting(signature))["id"])

    def _waiting(self, signature: str) -> dict[str, Any] | None:
        open_ones = self.get("/v1/payments/anomalies")["items"]
        return next((one for one in open_ones if one["signature"] == signature and one["amount"]), None)

    def ask(self, anomaly: str, recipient: str) -> httpx2.Response:
        with self.house.http() as http:
            return http.post(REFUNDS, json={"anomaly_id": anomaly, "recipient": recipient})

    def get(self, path: str) -> dict[str, Any]:
        with self.house.http() as http:
            answer = http.get(path)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def wait_for(self, refund: str, *states: str) -> dict[str, Any]:
        """Until it is in one of these states."""
        return self.until(lambda: self._in_state(refund, states))

    def _in_state(self, refund: str, states: tuple[str, ...]) -> dict[str, Any] | None:
        view = self.get(f"{REFUNDS}/{refund}")
        return view if view["state"] in states else None

    def until(self, look: Any) -> dict[str, Any]:
        """What it finds; nobody dies meanwhile."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := look()) is None:
            assert time.monotonic() < deadline, "it did not come"
            assert not self.house.wait_for_death(_ROUND_SECONDS)
        assert isinstance(found, dict)
        return found

    def die_and_come_up(self, crash_at: str, anomaly: str, recipient: str) -> str:
        """Asked for, taken up to this label, kill -9 of itself; the refund, with a server that lives."""
        self.house.start(crash_at)
        answer = self.ask(anomaly, recipient)
        assert answer.status_code == 202, answer.text
        assert self.house.wait_for_death(PATIENCE_SECONDS), f"it never came to {crash_at}"
        self.house.start()
        return str(answer.json()["id"])

    def reasons(self) -> list[str]:
        """Of all that waits for a person."""
        return sorted(one["reason"] for one in self.get("/v1/payments/anomalies")["items"])

    def control(self, act: str, **told: Any) -> Any:
        answer = httpx2.post(self.chain.ready["control_url"] + act, json=told, trust_env=False)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def held(self, wallet: str, asset: str) -> int:
        """By the chain, as it is confirmed: also what is not final yet."""
        confirmed = {"commitment": "confirmed", "encoding": "jsonParsed"}
        if asset == "SOL":
            return int(self.rpc.call("getBalance", wallet, confirmed)["value"])
        found = self.rpc.call("getTokenAccountsByOwner", wallet, {"mint": asset}, confirmed)["value"]
        accounts = [row["account"]["data"]["parsed"]["info"]["tokenAmount"] for row in found]
        return sum(int(account["amount"]) for account in accounts)


@pytest.fixture(params=["embedded", "distributed"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    url = None
    if request.param == "distributed":
        url = fresh_database(request.getfixturevalue("cluster"), request.getfixturevalue("template"))
    with Desk(tmp_path, url) as made:
        yield made


def a_wallet() -> str:
    return str(Keypair().pubkey())


def test_both_assets_come_back_once_however_often_they_are_asked_for(desk: Desk) -> None:
    for asset, amount in (("SOL", LAMPORTS), (desk.chain.ready["mint"], TOKENS)):
        anomaly, wallet, other = desk.pay_nobody(asset, amount), a_wallet(), a_wallet()

        asked = desk.ask(anomaly, wallet)
        again = desk.ask(anomaly, other)

        assert (asked.status_code, again.status_code) == (202, 409)
        refund = asked.json()["id"]
        assert f"refund {refund}" in again.json()["detail"]
        assert asked.headers["location"] == f"{REFUNDS}/{refund}"
        ended = desk.wait_for(refund, "final", "failed")
        assert (ended["state"], ended["amount"], ended["asset"]) == ("final", str(amount), asset)
        assert [one["outcome"] for one in ended["transactions"]] == ["final"]
        assert (desk.held(wallet, asset), desk.held(other, asset)) == (amount, 0)
        assert desk.get(f"/v1/payments/anomalies/{anomaly}")["resolution"] == f"refund {refund}"
        memo = desk.rpc.call("getSignaturesForAddress", wallet)[0]["memo"] if asset == "SOL" else None
        assert memo in {None, f"[{len(refund) + 13}] tempa:refund:{refund}"}
    assert desk.reasons() == OF_GENESIS
    assert desk.house.stop() == 0


def test_killed_between_its_steps_it_pays_once(desk: Desk) -> None:
    """Between signed and sent, while it is handed in, and between sent and final."""
    desk.control("/slot-time", slot_ms=SLOW_SLOT_MS)
    both = itertools.cycle([("SOL", LAMPORTS), (desk.chain.ready["mint"], TOKENS)])
    for label, (asset, amount) in zip(LABELS, both, strict=False):
        anomaly, wallet = desk.pay_nobody(asset, amount), a_wallet()

        refund = desk.die_and_come_up(f"{label}:1", anomaly, wallet)

        ended = desk.wait_for(refund, "final", "failed")
        assert ended["state"] == "final"
        assert len(ended["transactions"]) == 1, "what was on disk is what was sent"
        assert desk.held(wallet, asset) == amount
        assert desk.ask(anomaly, wallet).status_code == 409
    assert desk.reasons() == OF_GENESIS
    assert desk.house.stop() == 0


@pytest.mark.parametrize("desk", ["embedded"], indirect=True)
def test_what_was_lost_on_its_way_is_signed_anew_and_the_first_can_land_no_more(desk: Desk) -> None:
    anomaly, wallet = desk.pay_nobody("SOL", LAMPORTS), a_wallet()
    desk.control("/hold", holding=True)
    refund = desk.die_and_come_up("refund.sent:1", anomaly, wallet)
    (first,) = desk.wait_for(refund, "broadcast")["transactions"]
    assert desk.held(wallet, "SOL") == 0

    desk.control("/slot-time", slot_ms=10)
    expired = desk.until(lambda: _with_outcome(desk, refund, "expired"))  # 450 blocks later
    landed = desk.control("/land", signature=first["signature"])
    desk.control("/hold", holding=False)
    desk.control("/slot-time", slot_ms=SLOT_MS)

    assert expired["transactions"][0]["signature"] == first["signature"]
    assert landed == {"landed": False}
    ended = desk.wait_for(refund, "final", "failed")
    assert [one["outcome"] for one in ended["transactions"]] == ["expired", "final"]
    assert desk.held(wallet, "SOL") == LAMPORTS
    assert desk.house.stop() == 0


def _with_outcome(desk: Desk, refund: str, outcome: str) -> dict[str, Any] | None:
    view = desk.get(f"{REFUNDS}/{refund}")
    return view if outcome in {one["outcome"] for one in view["transactions"]} else None


@pytest.mark.parametrize("desk", ["embedded"], indirect=True)
def test_with_a_key_that_others_can_read_nothing_starts(desk: Desk) -> None:
    assert desk.house.stop() == 0
    desk.key.chmod(0o644)

    with pytest.raises(StartFault):
        desk.house.start()

    (server,) = desk.house.processes
    assert server.process is not None
    assert server.process.wait(PATIENCE_SECONDS) == USAGE
    assert server.log is not None
    assert "payments.refund_keypair" in server.log.read_text()
    assert "its mode is 0644" in server.log.read_text()
