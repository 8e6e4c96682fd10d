"""How far the feed has come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.adapters.stores.commands.flow import ASK, Access

if TYPE_CHECKING:
    from tempa.adapters.stores.commands.flow import Flow


class FeedPart(Access):
    """`JobStore.last_position`."""

    async def last_position(self) -> int:
        """No position beyond it was ever given, to whichever account's event; 0 if none was."""
        return await self._read(_last_position)


def _last_position() -> Flow[int]:
    position: int = yield ASK.last_position()
    return position
