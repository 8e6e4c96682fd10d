"""An account's history as one node tells it: read newest first, page by page, down to a floor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from tempa.settlement.inbox import Cursor, Unread
from tempa.settlement.ports import Trouble

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tempa.settlement.ports import Chain, Sighting

OVERLAP_SLOTS = 512
"""Read again each time, below what was read: about two minutes, in which a node's backends come together."""

_NEWEST = 2**64 - 1  # no slot is above it


class Page(NamedTuple):
    """What a page says of where its stretch goes on. `unread` None: it ends here, and is whole."""

    unread: Unread | None
    newest: str | None  # the first signature of it


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads one account's history on one node, which shows everything up to slot `bound`.

    - `take`: makes a page durable; only then is the next one asked for.
    - `limit`: rows of a page.
    """

    node: Chain
    address: str
    bound: int
    take: Callable[[Sequence[Sighting]], Awaitable[None]]
    limit: int = 1000

    async def read(self, unread: Unread) -> Page | Trouble:
        """One page of a stretch.

        A backend of the node that is behind is kept out: it would end where it does not know `before`.
        """
        known_slot = self.bound if unread.before is None else max(self.bound, unread.slot)
        rows = await self.node.signatures_for_address(
            self.address, before=unread.before, limit=self.limit, min_context_slot=known_slot
        )
        if isinstance(rows, Trouble):
            return rows
        await self.take(rows)
        if not _is_in_order(rows, unread.slot) or _stands_still(rows, unread):
            return Trouble("answer_unreadable", self.node.name, detail="a history that is not newest first")
        if not rows and not _is_whole(unread):
            return Trouble("history_lost", self.node.name, detail=f"it ends without {unread.known}")
        return Page(_rest(unread, rows), rows[0].signature if rows else None)


def head(cursor: Cursor | None, bound: int) -> Unread:
    """From the newest there is down to what was read before, and a little further."""
    if cursor is None:
        return Unread(before=None, slot=_NEWEST, floor=0, known=None)
    floor = max(0, min(cursor.slot, bound) - OVERLAP_SLOTS)
    return Unread(before=None, slot=_NEWEST, floor=floor, known=cursor.signature)


def advanced(cursor: Cursor | None, bound: int, newest: str | None, rest: Unread | None) -> Cursor:
    """The cursor once the head was read, but for `rest` if it was too long for one go."""
    before = cursor or Cursor(0)
    return Cursor(max(before.slot, bound), newest or before.signature, rest or before.unread)


def _is_in_order(rows: Sequence[Sighting], slot: int) -> bool:
    """Newest first, and behind the row that was asked for: a node that does not know it begins anew."""
    for row in rows:
        if row.slot > slot:
            return False
        slot = row.slot
    return True


def _stands_still(rows: Sequence[Sighting], unread: Unread) -> bool:
    """Whether the page ends with the row that it was to begin behind."""
    return bool(rows) and rows[-1].signature == unread.before


def _is_whole(unread: Unread) -> bool:
    """Whether the history may end here: nothing was ever read that it lacks."""
    return unread.known is None


def _rest(unread: Unread, rows: Sequence[Sighting]) -> Unread | None:
    if not rows or rows[-1].slot < unread.floor:
        return None
    seen = any(row.signature == unread.known for row in rows)
    edge = _edge(unread, rows)
    return replace(unread, before=edge.signature, slot=edge.slot, known=None if seen else unread.known)


def _edge(unread: Unread, rows: Sequence[Sighting]) -> Sighting:
    """Behind which row to go on: the last one of the slot before the last.

    So the last slot is read again as a whole: its order differs from one backend of a node to another, and
    what one had further down another may have had further up. Unless the page lies within a single slot.
    """
    above = [row for row in rows if rows[-1].slot < row.slot < unread.slot]
    return above[-1] if above else rows[-1]
