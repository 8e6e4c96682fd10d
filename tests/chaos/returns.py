"""Money that a market has sent back: each payment once, to a wallet that was never used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from solders.keypair import Keypair

if TYPE_CHECKING:
    from tests.chaos.market import Market

REFUNDS = "/v1/payments/refunds"
_ROUND_SECONDS = 0.2
_AMOUNT = 90_000


@dataclass
class Returns:
    """`due`: by the payment's signature, who gets it back, and how much it is."""

    market: Market
    due: dict[str, tuple[str, int]] = field(default_factory=dict)

    def send_back(self) -> None:
        """Money for no quote, which is asked back as soon as it waits."""
        amount = _AMOUNT + len(self.due)
        signature = self.market.chain.pay(amount)
        self.due[signature] = (str(Keypair().pubkey()), amount)
        self.market.untold.append(signature)
        self.market.tell()
        self._ask()

    def finish(self) -> None:
        """Wait until all of it is final, and look at who has got what, by the chain."""
        while not self._are_final():
            self.market.check_patience("what is sent back")
            assert not self.market.house.wait_for_death(_ROUND_SECONDS)
        for wallet, amount in self.due.values():
            assert self.market.chain.balance(wallet) == amount, "sent back twice, or not at all"

    def _ask(self) -> None:
        for signature, (wallet, _) in self.due.items():
            for anomaly in self.market.open_of(signature):
                asked = {"anomaly_id": anomaly["id"], "recipient": wallet}
                with self.market.house.http() as http:
                    answer = http.post(REFUNDS, json=asked)
                assert answer.status_code == 202, answer.text

    def _are_final(self) -> bool:
        self._ask()
        found = self.market.get(f"{REFUNDS}?limit=200")["items"]
        return {one["signature"] for one in found if one["state"] == "final"} == set(self.due)
