"""`tempa dev chain` as a process: its ready file, its end, and a payment to it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from tempa.testing.devchain.payments import PaymentFault, Rpc, pay_request

COMMAND = "from tempa.cli.dev import app; app()"
PATIENCE_SECONDS = 30.0


class Running:
    """The process, and what its ready file says."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "chain.json"
        options = ["--port", "0", "--control-port", "0", "--ready-file", str(self._file), "--json"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, "chain", *options, "--slot-ms", "5"], stdout=subprocess.PIPE
        )
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], PATIENCE_SECONDS)[0], "it never came up"
        self.printed: dict[str, Any] = json.loads(self.process.stdout.readline())
        self.ready: dict[str, Any] = json.loads(self._file.read_text())


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    found = Running(tmp_path)
    with found.process:
        yield found
        found.process.kill()


def test_it_says_where_it_is_takes_a_payment_and_ends_well(running: Running) -> None:
    ready = running.ready
    assert ready == running.printed
    assert set(ready) == {"rpc_url", "ws_url", "control_url", "treasury", "mint"}
    rpc = Rpc(ready["rpc_url"])
    url = f"solana:{ready['treasury']}?amount=1.5&spl-token={ready['mint']}"
    signature = pay_request(rpc, url, ready["mint"])
    with connect(ready["ws_url"], proxy=None) as socket:  # at finality, which is the default
        socket.send(json.dumps({"id": 1, "method": "signatureSubscribe", "params": [signature]}))
        heard = [json.loads(socket.recv(timeout=PATIENCE_SECONDS)) for _ in range(2)]
    assert heard[1]["params"]["result"]["value"] == {"err": None}
    accounts = rpc.call(
        "getTokenAccountsByOwner", ready["treasury"], {"mint": ready["mint"]}, {"encoding": "jsonParsed"}
    )

    amount = accounts["value"][0]["account"]["data"]["parsed"]["info"]["tokenAmount"]["amount"]
    assert amount == "1500000"
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(PATIENCE_SECONDS) == 0


def test_what_cannot_be_paid_is_said_in_words(running: Running) -> None:
    rpc = Rpc(running.ready["rpc_url"])
    treasury, mint = running.ready["treasury"], running.ready["mint"]
    with pytest.raises(PaymentFault, match="no mint"):
        pay_request(rpc, f"solana:{treasury}?amount=1", treasury)
    with pytest.raises(PaymentFault, match="more than 6 decimals"):
        pay_request(rpc, f"solana:{treasury}?amount=0.0000001&spl-token={mint}", mint)
    with pytest.raises(PaymentFault, match="Transaction simulation failed"):
        pay_request(rpc, f"solana:{treasury}?amount=99999999&spl-token={mint}", mint)
    with pytest.raises(PaymentFault, match="No development chain") as caught:
        pay_request(Rpc("http://127.0.0.1:1"), f"solana:{treasury}?amount=1", "SOL")
    assert caught.value.is_unreachable


def test_a_port_that_is_taken_ends_it(running: Running) -> None:
    port = running.ready["rpc_url"].rpartition(":")[2]
    ended = subprocess.run(
        [sys.executable, "-c", COMMAND, "chain", "--port", port],
        env=dict(os.environ),
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert ended.returncode != 0
    assert b"in use" in ended.stderr
