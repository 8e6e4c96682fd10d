"""Who paid, and what the payment names: references, memos, and single transfers with their own references."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

from tempa.settlement.model import SOL, Part
from tempa.settlement.transfers import memos, transfers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.settlement.answer import Transaction
    from tempa.settlement.model import Treasury, TreasuryAccount
    from tempa.settlement.transfers import Transfer


class Labels:
    """Of one transaction; each is worked out when it is asked for, as most transactions pay nobody here."""

    def __init__(self, transaction: Transaction, treasury: Treasury) -> None:
        self._transaction = transaction
        self._treasury = treasury

    @cached_property
    def memos(self) -> tuple[str, ...]:
        """In the order they ran."""
        return memos(self._transaction.instructions)

    @cached_property
    def references(self) -> tuple[str, ...]:
        """Keys that do nothing in the transaction: no program, no signer, no mint, no balance moved."""
        return tuple(key for key in self._transaction.keys if key not in self._busy)

    def payer(self, row: TreasuryAccount) -> str | None:
        """Whose balance of the asset fell; where nobody's alone did, who authorised the transfers.

        Not the first key: that pays the fee, and may be a relayer's.
        """
        fallen = self._fallen_lamports() if row.asset == SOL else self._fallen_tokens(row.asset)
        losers = {owner for owner, change in fallen.items() if change < 0} - {row.owner}
        if len(losers) != 1:
            into = (transfer for transfer in self._transfers if transfer.destination == row.address)
            losers = {transfer.authority for transfer in into if transfer.authority}
        return losers.pop() if len(losers) == 1 else None

    def parts(self, address: str, amount: int) -> tuple[Part, ...]:
        """The transfers into `address`, if they sum to `amount`; else they do not tell the whole story."""
        into = [transfer for transfer in self._transfers if transfer.destination == address]
        if sum(transfer.amount for transfer in into) != amount:
            return ()
        known = frozenset(self.references)
        return tuple(
            Part(transfer.amount, tuple(label for label in transfer.labels if label in known))
            for transfer in into
        )

    @cached_property
    def _transfers(self) -> list[Transfer]:
        return list(transfers(self._transaction.instructions))

    @cached_property
    def _busy(self) -> set[str]:
        transaction, keys = self._transaction, self._transaction.keys
        busy = {instruction.program for instruction in transaction.instructions} | transaction.signers
        for balances in (transaction.tokens_before, transaction.tokens_after):
            for index, balance in balances.items():
                busy |= {keys[index], balance.mint}
                if balance.owner is not None:
                    busy.add(balance.owner)
        moved = zip(keys, transaction.before, transaction.after, strict=True)
        busy.update(key for key, before, after in moved if before != after)
        for row in self._treasury.accounts:
            busy |= {row.address, row.owner}
        busy.update(key for key in keys if key.startswith("Sysvar"))
        return busy

    def _fallen_lamports(self) -> Mapping[str, int]:
        transaction = self._transaction
        moved = zip(transaction.keys, transaction.before, transaction.after, strict=True)
        changes = {key: after - before for key, before, after in moved}
        changes[transaction.keys[0]] += transaction.fee
        return changes

    def _fallen_tokens(self, mint: str) -> Mapping[str, int]:
        """By owner: one may pay from several accounts, or send the change to another of its own."""
        changes: dict[str, int] = defaultdict(int)
        for sign, balances in ((-1, self._transaction.tokens_before), (1, self._transaction.tokens_after)):
            for balance in balances.values():
                if balance.mint == mint and balance.owner is not None:
                    changes[balance.owner] += sign * balance.amount
        return changes
