"""The guard in front of the inbox, in Redis or Valkey: what surely lies on disk need not be written again.

`SET NX` *before* the insert, as the source recipe has it, loses payments: a process that dies between the
two leaves a mark and no row, and every further try of the provider is passed over. Here a mark follows the
commit: without one a call costs a write, and with one it is true that nothing is to be written. Only a
database that was set back to an older state holds less than the marks say, for as long as they live. The
sweep does not ask the guard, and finds those payments all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from redis.asyncio import Redis

    from tempa.core.clock import Clock

TIMEOUT_SECONDS = 0.05  # a write to the store takes less than a guard that needs longer could save
REST_SECONDS = 5.0  # how long one that has failed is left alone: a timeout for each call would be no help
KEPT_SECONDS = 3600  # providers repeat themselves within minutes; a lie should not live longer than that
_CONNECTIONS_MAX = 16

_logger = logging.getLogger(__name__)


class RedisGuard:
    """`tempa.settlement.ports.Guard`.

    `namespace` tells installations apart that share a server: the marks of one say nothing to the other.
    """

    def __init__(self, url: str, *, namespace: str, clock: Clock) -> None:
        self._redis = _connect(url)
        self._prefix = f"tempa:{namespace}:payments"
        self._clock = clock
        self._rests_until = float("-inf")

    async def known(self, source: str, words: Sequence[str]) -> frozenset[str]:
        """Those of `words` that were remembered; none while the guard is out of order."""
        marks = await self._asked(self._redis.mget, [self._key(source, word) for word in words])
        return frozenset(word for word, mark in zip(words, marks or (), strict=False) if mark is not None)

    async def remember(self, source: str, words: Sequence[str]) -> None:
        """Mark what is on disk."""
        pipeline = self._redis.pipeline(transaction=False)
        for word in words:
            pipeline.set(self._key(source, word), b"1", nx=True, ex=KEPT_SECONDS)
        await self._asked(pipeline.execute)

    async def close(self) -> None:
        """Idempotent."""
        with contextlib.suppress(Exception):
            await self._redis.aclose()

    def _key(self, source: str, word: str) -> str:
        return f"{self._prefix}:{source}:{word}"

    async def _asked(self, call: Any, *given: Any) -> Any:
        """What Redis answers; None if it does not, for whatever reason: it is then left alone for a while."""
        if self._clock.monotonic() < self._rests_until:
            return None
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                answer: Awaitable[Any] = call(*given)
                return await answer
        except Exception as error:  # noqa: BLE001 - whatever it is, the store decides without it
            self._rests_until = self._clock.monotonic() + REST_SECONDS
            _logger.warning("the payments' guard does not answer", extra={"error": type(error).__name__})
            return None


def _connect(url: str) -> Redis:
    """Connects with the first command. None is tried twice: that would take longer than the store does."""
    from redis.asyncio import BlockingConnectionPool, Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=_CONNECTIONS_MAX,
        timeout=TIMEOUT_SECONDS,
        socket_timeout=TIMEOUT_SECONDS,
        socket_connect_timeout=TIMEOUT_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )
    return Redis.from_pool(pool)  # which closes the pool with itself
