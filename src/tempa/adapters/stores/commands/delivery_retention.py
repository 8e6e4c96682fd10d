"""Deliveries past their time: first what was sent and answered goes, then the record of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.sql import encode
from tempa.core.clock import to_ms

if TYPE_CHECKING:
    from datetime import datetime

    from tempa.adapters.stores.commands.flow import Flow


class DeliveryRetentionPart(Access):
    """`WebhookStore`: pruning, a slice a transaction. What is not finished is never touched."""

    async def prune_payloads(self, before: datetime, limit: int) -> int:
        """Forget messages and answers of up to `limit` that finished before then; how many those were."""
        return await self._write(_prune_payloads, to_ms(before), limit)

    async def prune_deliveries(self, before: datetime, limit: int) -> int:
        """Delete up to `limit` that finished before then, the earliest first, and URLs left without any."""
        return await self._write(_prune, to_ms(before), limit)

    async def prune_notices(self, before: datetime, limit: int) -> int:
        """Delete up to `limit` events about no job from before then that no delivery tells of."""
        return await self._write(_prune_notices, to_ms(before), limit)


def _prune_payloads(before: int, limit: int) -> Flow[Done[int]]:
    spent = yield ASK.spent_payloads(before=before, limit=limit)
    numbers = encode([row["number"] for row in spent])
    if spent:
        yield ASK.forget_messages(numbers=numbers)
        yield ASK.forget_excerpts(numbers=numbers, nothing=b"")
    return Done(len(spent))


def _prune(before: int, limit: int) -> Flow[Done[int]]:
    yield ASK.lock_feed()  # only a fan-out gives an endpoint new deliveries: none may do so meanwhile
    moment = yield MOMENT
    pruned = yield ASK.prune_deliveries(before=before, limit=limit)
    for number in {row["endpoint_number"] for row in pruned}:
        yield ASK.prune_endpoint(endpoint_number=number, now=moment.now)
    return Done(len(pruned))


def _prune_notices(before: int, limit: int) -> Flow[Done[int]]:
    yield ASK.lock_feed()  # as above
    pruned: int = yield ASK.prune_notices(before=before, limit=limit)
    return Done(pruned)
