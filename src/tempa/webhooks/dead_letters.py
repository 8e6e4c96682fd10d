"""Dead letters: look, re-drive, discard. Nothing else makes one vanish before its retention."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tempa.core.errors import Problem, Refusal
from tempa.webhooks.model import DeadFilter

if TYPE_CHECKING:
    from tempa.webhooks.ports import WebhookStore
    from tempa.webhooks.wire import Discard, Redrive


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """What people do with dead letters."""

    store: WebhookStore

    async def redrive(self, account: str, asked: Redrive) -> dict[str, Any]:
        """Send dead letters again, each with a fresh budget of retries. `spent`: cannot be sent again.

        Raises `Refusal` when nothing narrows the request, or `since` is no time.
        """
        which = DeadFilter(
            delivery_ids=tuple(asked.delivery_ids or ()),
            endpoint_id=asked.endpoint_id,
            group=asked.group,
            since=_time(asked.since),
        )
        if which == DeadFilter():
            message = "Name what to re-drive: delivery_ids, endpoint_id, group or since."
            raise Refusal("invalid-request", message, (Problem("", message),))
        matched = await self.store.count_dead(account, which)
        spent = await self.store.count_spent(account, which)
        spacing_seconds = 1.0 / asked.rate_per_second if asked.rate_per_second else 0.0
        redriven = 0 if asked.dry_run else await self.store.redrive(account, which, spacing_seconds)
        told = {"matched": matched, "redriven": redriven}
        return {**told, "spent": spent} if spent else told

    async def discard(self, account: str, asked: Discard) -> dict[str, Any]:
        """Give dead letters up, with a reason that stays on record."""
        which = DeadFilter(delivery_ids=tuple(asked.delivery_ids))
        return {"discarded": await self.store.discard(account, which, asked.reason)}


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
        in_utc = at.astimezone(UTC)
    except (ValueError, OverflowError):  # no time; or the first or last day there is, in another zone
        raise _no_time() from None
    if at.tzinfo is None:
        raise _no_time()
    return in_utc


def _no_time() -> Refusal:
    message = "since is no RFC 3339 time with a zone, such as 2026-11-30T12:00:00Z."
    return Refusal("invalid-request", message, (Problem("/since", message),))
