"""How the treasury and the nodes that tell of it stand now, for the operator."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tempa.core.clock import rfc3339
from tempa.settlement.payments import words_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tempa.settlement.model import TreasuryAccount
    from tempa.settlement.watch import TreasuryWatch

_TAKEN = "Payments are looked up and credited."
_NOBODY = "A payment waits to be looked up since {due_at}: run a process with the role settler."
_NO_NODE = "Payments wait: none of the nodes may be asked now, see below."
_OVERDUE_SECONDS = 30.0  # a settler at work takes what is due within a second
_FIRST_LOOK = "The treasury's accounts are looked for. Ask again in a moment."


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStanding:
    """A node of the chain. `excluded`: why it is not asked now (a code of `reasons`).

    `rpc_url` is told of a node on this machine alone: that of a provider holds a key. `slot`: the newest
    final one when it was last looked at; None if it did not say.
    """

    name: str
    rpc_url: str | None
    slot: int | None
    excluded: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the watch over the treasury saw last.

    `cluster`: the genesis hash; None until it is known. `accounts`: none until all of them were found.
    `said`: why payments wait, empty if they do not.
    """

    wallet: str
    cluster: str | None
    accounts: tuple[TreasuryAccount, ...]
    nodes: tuple[NodeStanding, ...]
    said: str


def standing(watch: TreasuryWatch, rpc_urls: Sequence[str]) -> Standing:
    """As of its last look. `rpc_urls`: of its nodes, in their order."""
    treasury, quorum = watch.treasury, watch.quorum
    cluster = quorum.treasury.cluster or None
    nodes = (
        NodeStanding(
            name=node.name,
            rpc_url=url if is_of_this_machine(url) else None,
            slot=quorum.slots.get(node.name),
            excluded=quorum.excluded.get(node.name) if cluster else None,  # nothing was asked before
        )
        for node, url in zip(quorum.nodes, rpc_urls, strict=True)
    )
    return Standing(
        wallet=watch.wallet,
        cluster=cluster,
        accounts=() if treasury is None else treasury.accounts,
        nodes=tuple(nodes),
        said="" if treasury is not None else watch.said or _FIRST_LOOK,
    )


def is_of_this_machine(url: str) -> bool:
    """Whether a URL leads to a loopback address and holds nothing that could be a key."""
    parts = urlsplit(url)
    if parts.query or parts.fragment or "@" in parts.netloc:
        return False
    host = parts.hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def standing_view(found: Standing, due_at: datetime | None, now: datetime) -> dict[str, Any]:
    """What the operator is told. `due_at`: of the next lookup; None: nothing waits."""
    return {
        "wallet": found.wallet,
        "cluster": found.cluster,
        "is_known": not found.said,
        "message": found.said or _trouble(found, due_at, now) or _TAKEN,
        "accounts": [
            {
                "asset": row.asset,
                "address": row.address,
                "decimals": row.decimals,
                "program": row.program,
                "refusal": row.refusal,
                "message": words_of(row.refusal),
            }
            for row in found.accounts
        ],
        "nodes": [
            {
                "name": node.name,
                "rpc_url": node.rpc_url,
                "slot": node.slot,
                "excluded": node.excluded,
                "message": words_of(node.excluded),
            }
            for node in found.nodes
        ],
    }


def _trouble(found: Standing, due_at: datetime | None, now: datetime) -> str | None:
    """Why payments are not credited although the treasury is known."""
    if all(node.excluded for node in found.nodes):
        return _NO_NODE
    if due_at is not None and (now - due_at).total_seconds() > _OVERDUE_SECONDS:
        return _NOBODY.format(due_at=rfc3339(due_at))
    return None
