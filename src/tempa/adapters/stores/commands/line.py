"""The line in which endpoints wait for a claim: who stands in it, and since when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.adapters.stores.commands.flow import ASK
from tempa.adapters.stores.sql import encode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tempa.adapters.stores.commands.flow import Flow


def rejoin(endpoint_numbers: Iterable[int], now: int) -> Flow[None]:
    """Reckon anew when each may be claimed from: in every transaction that touches its deliveries.

    Behind a lock on the endpoints, so that of two such transactions the later sees what the first did.
    """
    numbers = sorted(set(endpoint_numbers))
    if not numbers:
        return
    yield ASK.lock_endpoints(numbers=encode(numbers))
    yield ASK.rejoin_line([{"endpoint_number": number, "now": now} for number in numbers])
