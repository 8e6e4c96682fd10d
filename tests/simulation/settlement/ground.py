"""The chain that histories play on: one treasury, two renters, a stranger, mints; new for each history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.settlement.model import SOL
from tempa.settlement.watch import ListedMint
from tempa.testing.devchain import extensions
from tempa.testing.devchain.cluster import Cluster
from tempa.testing.devchain.programs import TOKEN, TOKEN_2022, associated_account
from tempa.testing.devchain.wallet import Faucet, Wallet, put_table

if TYPE_CHECKING:
    from solders.account import Account
    from solders.pubkey import Pubkey

FINAL_SLOTS = 33
FUNDS = 10**15
_FEE_BASIS_POINTS = 100
_AMOUNT = slice(64, 72)  # of a token account's data


class RewoundCluster(Cluster):
    """A cluster that can be as it was before, whatever has become final since: 10 ms less a history."""

    def rewind(self, slot: int) -> None:
        """Forget every block above `slot`, and go on from there as the first time."""
        while self.tip.slot > slot:
            block = self._blocks.pop()
            del self._hashes[block.blockhash]
            for landed in reversed(block.landed):
                self._forget(landed)
        self.pool.clear()
        self._next_slot = slot + 1
        self._open_block()


class Ground:
    """Wallets and mints. Renters and stranger have SOL, both listed tokens and the spoofed one."""

    def __init__(self) -> None:
        self.chain = RewoundCluster(seed="histories")
        faucet = Faucet(self.chain)
        self.treasury = faucet.open_wallet("treasury")
        self.renters = (faucet.open_wallet("ann"), faucet.open_wallet("bob"))
        self.stranger = faucet.open_wallet("eve")
        self.relayer = faucet.open_wallet("relayer")
        self.issuer = faucet.open_wallet("issuer")
        fee = extensions.transfer_fee(_FEE_BASIS_POINTS, 2**64 - 1, self.issuer.key)
        self.usd = self._open("usd")
        self.fee = self._open("fee", fee)
        self.spoof = self._open("spoof")
        steps = (self.treasury.account(self.usd), self.usd)
        self.table = put_table(self.chain, steps, "treasury")
        self.chain.tick(FINAL_SLOTS)
        self.accounts = {str(self.treasury_account(asset)): asset for asset in self.assets}
        """The asset of each account that is on the list."""
        self._base_slot = self.chain.tip.slot
        self.begin()

    def begin(self) -> None:
        """As if nothing had been played on it."""
        self.chain.rewind(self._base_slot)

    @property
    def assets(self) -> tuple[str, ...]:
        """What the treasury takes."""
        return SOL, str(self.usd), str(self.fee)

    @property
    def mints(self) -> list[ListedMint]:
        """As the operator lists them."""
        allowed = frozenset({"transferFeeConfig"})
        return [ListedMint(mint=str(self.usd)), ListedMint(mint=str(self.fee), extensions=allowed)]

    def program(self, mint: Pubkey) -> Pubkey:
        """The token program of a mint."""
        return TOKEN_2022 if mint == self.fee else TOKEN

    def account_of(self, wallet: Wallet, mint: Pubkey) -> Pubkey:
        """Where a wallet keeps a token."""
        return associated_account(wallet.key, mint, self.program(mint))

    def treasury_account(self, asset: str) -> Pubkey:
        """Where the treasury takes an asset."""
        if asset == SOL:
            return self.treasury.key
        mint = self.usd if asset == str(self.usd) else self.fee
        return self.account_of(self.treasury, mint)

    def mint_of(self, asset: str) -> Pubkey:
        """The mint of a token."""
        return {str(mint): mint for mint in (self.usd, self.fee, self.spoof)}[asset]

    def _open(self, name: str, *wanted: extensions.Extension) -> Pubkey:
        mint = self.issuer.mint(name, extensions=wanted)
        program = TOKEN_2022 if wanted else TOKEN
        for wallet in (*self.renters, self.stranger):
            self.issuer.give(mint, wallet.key, FUNDS, program)
        self.issuer.give(mint, self.treasury.key, 0, program)
        return mint


def held(account: Account | None, asset: str) -> int:
    """What an account's own bytes say it holds of an asset, in base units."""
    if account is None:
        return 0
    return account.lamports if asset == SOL else int.from_bytes(account.data[_AMOUNT], "little")
