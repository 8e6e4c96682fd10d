"""What a development chain consists of: cluster, nodes, sockets, providers, and wallets with money."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.testing.devchain.couriers import Courier
from tempa.testing.devchain.node import Node
from tempa.testing.devchain.sockets import Line
from tempa.testing.devchain.wallet import Faucet

if TYPE_CHECKING:
    from tempa.testing.devchain.cluster import Cluster
    from tempa.testing.devchain.couriers import Hook

PAYER_FUNDS = 1_000_000_000_000  # a million of the mint's own units
MINT_DECIMALS = 6
MINT_NAME = "usd"
_SETTLED_SLOTS = 33  # what was made at the start is final when anybody looks


class Devnet:
    """A treasury with an account of a mint of 6 decimals, and a payer with plenty of it and of SOL."""

    def __init__(self, cluster: Cluster, nodes: int = 1) -> None:
        self.cluster = cluster
        self.nodes = [Node(cluster, number) for number in range(nodes)]
        self.lines = [Line() for _ in range(nodes)]
        self.couriers: list[Courier] = []
        self.faucet = Faucet(cluster)
        self.treasury = self.faucet.open_wallet("treasury")
        self.payer = self.faucet.open_wallet("payer")
        self.mint = self.payer.mint(MINT_NAME, decimals=MINT_DECIMALS)
        self.payer.give(self.mint, self.payer.key, PAYER_FUNDS)
        self.payer.give(self.mint, self.treasury.key, 0)
        cluster.tick(_SETTLED_SLOTS)

    def post_to(self, hook: Hook) -> Courier:
        """Let a provider post what lands from now on; in a running loop, and stopped with the chain."""
        courier = Courier(hook, self.nodes[0])
        courier.start()
        self.couriers.append(courier)
        return courier
