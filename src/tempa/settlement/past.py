"""Everything that a node has of the treasury's accounts, from the newest down to the first: for `rebuild`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.settlement.ports import Trouble

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from tempa.settlement.ports import Chain, Sighting

_PAGE = 1000


async def whole_past(
    node: Chain, addresses: Iterable[str], wait: Callable[[Trouble], Awaitable[None]]
) -> AsyncIterator[Sighting]:
    """Page by page, one account after the other; what two accounts share comes twice.

    `wait` is called where the node does not answer: the page is asked for again when it returns, and given up
    if it raises. A node may have dropped old transactions: ask one that keeps them all.
    """
    for address in addresses:
        before: str | None = None
        while True:
            page = await node.signatures_for_address(address, before=before, limit=_PAGE)
            if isinstance(page, Trouble):
                await wait(page)
                continue
            for sighting in page:
                yield sighting
            if not page or page[-1].signature == before:
                break
            before = page[-1].signature
