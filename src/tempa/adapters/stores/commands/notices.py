"""Events about no job but about an account's webhooks, appended in the transaction that they tell of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.adapters.stores.commands.flow import ASK
from tempa.adapters.stores.sql import encode
from tempa.core.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.webhooks.notices import Notice


def tell(notices: Sequence[tuple[str, Notice]], now: int) -> Flow[None]:
    """Each to its account. A reader of the feed sees what a webhook tells."""
    if not notices:
        return
    yield ASK.insert_event(
        [
            {
                "id": new_id("evt"),
                "account": account,
                "job_id": None,
                "sequence": None,
                "type": notice.type,
                "at": now,
                "body": encode({"data": notice.data}),
                "announce": encode({"data": notice.data, "chain": notice.chain}),
            }
            for account, notice in notices
        ]
    )
