"""Providers' webhooks: what landed is posted to an ingress, with each provider's patience and no more."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2

from tempa.testing.devchain.blocks import Commitment
from tempa.testing.devchain.providers import MAKERS, Stamp
from tempa.testing.devchain.subscriptions import Cursor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.testing.devchain.blocks import Landed
    from tempa.testing.devchain.node import Node
    from tempa.testing.devchain.providers import Post

_FORBIDDEN = 403  # Helius never tries that one again


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A webhook as one sets it up at a provider.

    - `source`: a key of `providers.MAKERS`.
    - `addresses`: only transactions that name one of them; all, if empty.
    - `batch`: transactions a request at most.
    - `retries`, `pause_seconds`: after a refusal. Helius: 3, one second apart, then lost. QuickNode streams
      hold all that follows back until a batch is taken.
    - `copies`: each request so many times. `lose`: of so many requests, the first ones, nothing is sent.
    """

    url: str
    source: str
    secret: str
    addresses: tuple[str, ...] = ()
    commitment: Commitment = Commitment.CONFIRMED
    batch: int = 25
    timeout_seconds: float = 1.0
    retries: int = 3
    pause_seconds: float = 1.0
    copies: int = 1
    lose: int = 0


@dataclass(slots=True)
class Parcel:
    """What became of one request: statuses in the order they came, None for no answer."""

    signatures: list[str]
    statuses: list[int | None] = field(default_factory=list)
    accepted: bool = False


class Courier:
    """Watches the chain for one hook, and posts. `parcels` is its record."""

    def __init__(self, hook: Hook, node: Node) -> None:
        assert hook.source in MAKERS, f"there are {', '.join(MAKERS)}"
        self.hook = hook
        self.parcels: list[Parcel] = []
        self.is_idle = asyncio.Event()
        self._cursor = Cursor(node, hook.commitment)
        self._cluster = node.cluster
        self._moved = asyncio.Event()
        self._numbers = itertools.count(1)
        self._losses = hook.lose
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Post what lands from now on."""
        self.is_idle.set()
        self._cluster.listeners.append(self._note)
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Idempotent; what is under way is dropped."""
        if self._task is None:
            return
        self._cluster.listeners.remove(self._note)
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self._task = None

    def _note(self) -> None:
        self.is_idle.clear()
        self._moved.set()

    async def _run(self) -> None:
        async with httpx2.AsyncClient(trust_env=False, timeout=self.hook.timeout_seconds) as session:
            while True:
                await self._moved.wait()
                self._moved.clear()
                for batch in _batches(self._wanted(), self.hook.batch):
                    await self._deliver(session, batch)
                if not self._moved.is_set():
                    self.is_idle.set()

    def _wanted(self) -> list[Landed]:
        watched = set(self.hook.addresses)
        fresh = self._cursor.fresh()
        return [one for one in fresh if not watched or watched & set(map(str, one.execution.keys.all))]

    async def _deliver(self, session: httpx2.AsyncClient, batch: Sequence[Landed]) -> None:
        parcel = Parcel([landed.signature for landed in batch])
        self.parcels.append(parcel)
        if self._losses:
            self._losses -= 1
            return
        for _ in range(self.hook.copies):
            post = MAKERS[self.hook.source](batch, self.hook.secret, self._stamp())
            await self._post(session, post, parcel)

    async def _post(self, session: httpx2.AsyncClient, post: Post, parcel: Parcel) -> None:
        for attempt in itertools.count():
            if attempt:
                await asyncio.sleep(self.hook.pause_seconds)
            status = await self._posted(session, post)
            parcel.statuses.append(status)
            parcel.accepted = parcel.accepted or (status is not None and status < 300)
            if parcel.accepted or not self._tries_again(status, attempt):
                return

    def _tries_again(self, status: int | None, attempt: int) -> bool:
        if self.hook.source.startswith("quicknode"):
            return True  # a stream holds what follows back until this one is taken
        return status != _FORBIDDEN and attempt < self.hook.retries

    async def _posted(self, session: httpx2.AsyncClient, post: Post) -> int | None:
        try:
            answer = await session.post(self.hook.url, content=post.body, headers=dict(post.headers))
        except httpx2.TransportError:
            return None
        return answer.status_code

    def _stamp(self) -> Stamp:
        return Stamp(int(time.time()), f"{id(self):x}-{next(self._numbers)}")


def parcel_json(parcel: Parcel) -> dict[str, Any]:
    """For the control plane."""
    return {"signatures": parcel.signatures, "statuses": parcel.statuses, "accepted": parcel.accepted}


def _batches(landed: list[Landed], size: int) -> list[list[Landed]]:
    return [landed[at : at + size] for at in range(0, len(landed), size)]
