"""From the chain's own answer to what came in: a pure function, by balances, never by instructions.

A receipt is the gain of one account of the allow-list, over the whole transaction. So it does not matter how
the money moved: a transfer, a program's inner call, p-token's batch without logs, a mint, a closed account.
Attribution to quotes is `attribution`, agreement of nodes `quorum`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.core.base58 import is_signature
from tempa.settlement.answer import UnreadableError, read_transaction
from tempa.settlement.labels import Labels
from tempa.settlement.model import SOL, Outflow, Receipt, Stray, Verdict
from tempa.settlement.transfers import WRAPPED_SOL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tempa.settlement.answer import TokenBalance, Transaction
    from tempa.settlement.model import Treasury, TreasuryAccount


def verify(answer: object, treasury: Treasury, signature: str) -> Verdict:
    """What the transaction did to the treasury.

    Args:
        answer: The member `result` of `getTransaction` at finality, any encoding. That it is null (not found)
            or an error is for the caller: here that is unreadable.
        treasury: The allow-list. Rows with a `refusal` take nothing.
        signature: The one asked for: an answer about another is no answer.

    Returns:
        Receipts, outflows and strays; `reason` if there is no receipt. Never raises for what a node or a
        payer can do, and never credits what it cannot read wholly.
    """
    if not is_signature(signature):
        return Verdict(signature=str(signature), reason="invalid_signature")
    try:
        transaction = read_transaction(answer)
    except UnreadableError as fault:
        return Verdict(signature=signature, reason=fault.code)
    if transaction.signature != signature:
        return Verdict(signature=signature, reason="answer_mismatch")
    if transaction.error is not None:
        return _failed(transaction, treasury)
    return _Judgement(transaction, treasury).verdict()


def _failed(transaction: Transaction, treasury: Treasury) -> Verdict:
    """Nothing was paid, but the fee was: that leaves the treasury too, if it sent the transaction."""
    judgement = _Judgement(transaction, treasury)
    for row in treasury.accounts:
        if row.asset == SOL and row.address == transaction.keys[0]:
            judgement.flow_out(row, transaction.fee, "fee")
    return Verdict(
        signature=transaction.signature,
        slot=transaction.slot,
        outflows=tuple(judgement.outflows),
        reason="transaction_failed",
        error=transaction.error,
    )


class _Judgement:
    """One transaction under way through the rules."""

    def __init__(self, transaction: Transaction, treasury: Treasury) -> None:
        self._transaction = transaction
        self._treasury = treasury
        self._labels = Labels(transaction, treasury)
        self.receipts: list[Receipt] = []
        self.outflows: list[Outflow] = []
        self.strays: list[Stray] = []

    def verdict(self) -> Verdict:
        rows = {row.address: row for row in self._treasury.accounts if row.asset != SOL}
        wallets = {row.owner for row in self._treasury.accounts}
        for address, balance, delta in _token_moves(self._transaction):
            if address in rows:
                self._judge_listed(rows[address], balance, delta)
            elif delta > 0 and balance.owner in wallets:
                self._stray(balance.mint, address, delta, self._unlisted(balance.mint))
        for row in self._treasury.accounts:
            if row.asset == SOL:
                self._judge_sol(row)
        return Verdict(
            signature=self._transaction.signature,
            slot=self._transaction.slot,
            receipts=tuple(self.receipts),
            outflows=tuple(self.outflows),
            strays=tuple(self.strays),
            reason=self._reason(),
        )

    def _reason(self) -> str | None:
        if self.receipts:
            return None
        if self.strays:
            return self.strays[0].reason
        return "treasury_outflow" if self.outflows else "nothing_received"

    def _unlisted(self, mint: str) -> str:
        if any(row.asset == mint for row in self._treasury.accounts):
            return "account_not_listed"
        return "wrapped_sol" if mint == WRAPPED_SOL else "mint_not_allowed"

    def _judge_listed(self, row: TreasuryAccount, balance: TokenBalance, delta: int) -> None:
        if delta > 0:
            self._flow_in(row, balance.mint, delta, _fault(row, balance))
        elif balance.mint == row.asset:
            self.flow_out(row, -delta, "transfer")

    def _judge_sol(self, row: TreasuryAccount) -> None:
        """The fee that the treasury paid itself is no part of what came in; it left all the same."""
        transaction = self._transaction
        if row.address not in transaction.keys:
            return
        index = transaction.keys.index(row.address)
        fee = transaction.fee if index == 0 else 0
        delta = transaction.after[index] - transaction.before[index] + fee
        self.flow_out(row, fee, "fee")
        if delta > 0:
            self._flow_in(row, SOL, delta, row.refusal)
        else:
            self.flow_out(row, -delta, "transfer")

    def _flow_in(self, row: TreasuryAccount, asset: str, amount: int, fault: str | None) -> None:
        if fault is not None:
            self._stray(asset, row.address, amount, fault)
            return
        transaction = self._transaction
        self.receipts.append(
            Receipt(
                cluster=self._treasury.cluster,
                signature=transaction.signature,
                asset=row.asset,
                account=row.address,
                amount=amount,
                slot=transaction.slot,
                index=transaction.index,
                block_time=transaction.block_time,
                payer=self._labels.payer(row),
                references=self._labels.references,
                memos=self._labels.memos,
                parts=self._labels.parts(row.address, amount),
            )
        )

    def flow_out(self, row: TreasuryAccount, amount: int, kind: str) -> None:
        if amount <= 0:
            return
        transaction = self._transaction
        self.outflows.append(
            Outflow(
                cluster=self._treasury.cluster,
                signature=transaction.signature,
                asset=row.asset,
                account=row.address,
                kind=kind,
                amount=amount,
                slot=transaction.slot,
                index=transaction.index,
                block_time=transaction.block_time,
            )
        )

    def _stray(self, asset: str, account: str, amount: int, reason: str) -> None:
        transaction = self._transaction
        self.strays.append(
            Stray(
                signature=transaction.signature,
                asset=asset,
                account=account,
                amount=amount,
                slot=transaction.slot,
                reason=reason,
            )
        )


def _fault(row: TreasuryAccount, balance: TokenBalance) -> str | None:
    """Why a gain of a listed account is not credited."""
    if balance.mint != row.asset:
        return "wrong_mint"
    if balance.owner != row.owner:
        return "wrong_owner"
    if balance.program != row.program:
        return "wrong_program"
    if balance.decimals != row.decimals:
        return "wrong_decimals"
    return row.refusal


def _token_moves(transaction: Transaction) -> Iterator[tuple[str, TokenBalance, int]]:
    """Each token account's change: its address, the balance it is about, and how much.

    One that is not there before or after held 0. Closed and opened anew for another mint, it changed twice.
    """
    before, after = transaction.tokens_before, transaction.tokens_after
    for index in sorted(before.keys() | after.keys()):
        old, new = before.get(index), after.get(index)
        address = transaction.keys[index]
        if old is not None and new is not None and old.mint == new.mint:
            yield address, new, new.amount - old.amount
            continue
        if old is not None:
            yield address, old, -old.amount
        if new is not None:
            yield address, new, new.amount
