"""The demo's chain: a development Solana in a thread of this process, so that it is gone with it."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.cli.exits import CommandFault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tempa.testing.devchain.payments import Rpc

_START_SECONDS = 30.0
_FINAL_SECONDS = 30.0
_LOOK_SECONDS = 0.01
_CALL_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoChain:
    """Where it is, and the secret that its provider shares with the server."""

    rpc_url: str
    ws_url: str
    control_url: str
    treasury: str
    mint: str
    provider_secret: str

    def environment(self) -> dict[str, str]:
        """Settings of a server that takes payments on it."""
        return {
            "TEMPA_SOLANA__RPC_URLS": f'["{self.rpc_url}"]',
            "TEMPA_SOLANA__WS_URL": self.ws_url,
            "TEMPA_SOLANA__TREASURY": self.treasury,
            "TEMPA_SOLANA__MINTS": f'["{self.mint}"]',
            "TEMPA_PAYMENTS__HELIUS__SECRET": self.provider_secret,
        }

    def tell(self, server_url: str, *, copies: int) -> None:
        """From now on a provider tells the server of what lands, each time in `copies` calls."""
        hook = {
            "source": "helius-raw",
            "url": f"{server_url}/v1/payments/ingress/helius",
            "secret": self.provider_secret,
            "copies": copies,
        }
        self._control("POST", "/webhooks", hook)

    def told(self) -> list[Mapping[str, Any]]:
        """Calls that the provider has made: `signatures` in them, and the `statuses` that answered."""
        return [parcel for hook in self._control("GET", "/state")["webhooks"] for parcel in hook["parcels"]]

    def rpc(self) -> Rpc:
        """Its first node."""
        from tempa.testing.devchain.payments import Rpc

        return Rpc(self.rpc_url)

    def _control(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        import httpx2

        url = f"{self.control_url}{path}"
        answer = httpx2.request(method, url, json=body, timeout=_CALL_SECONDS, trust_env=False)
        return answer.raise_for_status().json()


@contextlib.contextmanager
def demo_chain() -> Iterator[DemoChain]:
    """A chain until the end of the block. Needs the extra `solana`. Raises CommandFault."""
    runner = _Runner()
    runner.thread.start()
    try:
        if not runner.ready.wait(_START_SECONDS) or runner.told is None:
            raise CommandFault(f"The development chain did not start. {runner.fault or ''}".rstrip())
        yield DemoChain(**runner.told, provider_secret=secrets.token_urlsafe(32))
    finally:
        runner.stop()


def wait_until_final(rpc: Rpc, signature: str) -> float:
    """The Unix time at which a transaction was seen to be final. Raises CommandFault."""
    deadline = time.monotonic() + _FINAL_SECONDS
    while time.monotonic() < deadline:
        (status,) = rpc.call("getSignatureStatuses", [signature])["value"]
        if status is not None and status["confirmationStatus"] == "finalized":
            return time.time()
        time.sleep(_LOOK_SECONDS)
    raise CommandFault(f"{signature} was not final within {_FINAL_SECONDS:g} s.")


class _Runner:
    """The thread, and its event loop."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.told: dict[str, Any] | None = None
        self.fault: Exception | None = None
        self.thread = threading.Thread(target=self._run, name="demo-chain", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._stopped.set)
        self.thread.join(_START_SECONDS)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:  # noqa: BLE001 - told in the thread that waits
            self.fault = error
        finally:
            self.ready.set()

    async def _serve(self) -> None:
        from tempa.testing.devchain.chain import DevChain

        self._loop = asyncio.get_running_loop()
        async with DevChain(slot_ms=200, ticking=True, clock=time.time) as chain:
            self.told = chain.ready()
            self.ready.set()
            await self._stopped.wait()
