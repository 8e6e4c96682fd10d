"""Runs transactions in LiteSVM, keeps what they found and what they left, and can take them back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from solders.account import Account
from solders.litesvm import LiteSVM
from solders.pubkey import Pubkey
from solders.transaction_metadata import FailedTransactionMetadata, TransactionMetadata

from tempa.testing.devchain import arithmetic, tokens
from tempa.testing.devchain.failures import failure
from tempa.testing.devchain.programs import LOOKUP_TABLE, NATIVE_MINT, SYSTEM, TOKEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from solders.transaction import VersionedTransaction

_TABLE_HEADER_BYTES = 56
_NATIVE_DECIMALS = 9
_MINT_LAMPORTS = 1_461_600


@dataclass(frozen=True, slots=True)
class Keys:
    """All accounts of a transaction in the chain's order: its own, then those that lookup tables add."""

    static: tuple[Pubkey, ...]
    writable: tuple[Pubkey, ...] = ()
    readonly: tuple[Pubkey, ...] = ()

    @property
    def all(self) -> tuple[Pubkey, ...]:
        """What indexes in instructions and balances count in."""
        return self.static + self.writable + self.readonly


@dataclass(frozen=True, slots=True)
class TokenBalance:
    """One row of pre- or postTokenBalances."""

    index: int
    mint: Pubkey
    owner: Pubkey
    program: Pubkey
    amount: int
    decimals: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What a transaction did. `err` as in the RPC, None if it went through; `before` are its pre-images."""

    transaction: VersionedTransaction
    keys: Keys
    err: Any
    meta: TransactionMetadata
    before: tuple[Account | None, ...]
    after: tuple[Account | None, ...]
    tokens_before: tuple[TokenBalance, ...]
    tokens_after: tuple[TokenBalance, ...]


class Bank:
    """The state of the accounts at the tip of the chain. `slot` and time are set by who drives it."""

    def __init__(self) -> None:
        # LiteSVM knows one blockhash and remembers signatures for good: which blockhashes live, and what was
        # processed on which fork, is the cluster's to say.
        self._svm = LiteSVM().with_blockhash_check(False).with_transaction_history(0)
        self.put(NATIVE_MINT, Account(_MINT_LAMPORTS, _native_mint(), TOKEN, executable=False, rent_epoch=0))

    def at(self, slot: int, unix_seconds: int) -> None:
        """Turn the programs' clock. A durable nonce advances to another value in each slot."""
        self._svm.warp_to_slot(slot)
        self._svm.expire_blockhash()
        clock = self._svm.get_clock()
        clock.unix_timestamp = unix_seconds
        self._svm.set_clock(clock)

    def account(self, key: Pubkey) -> Account | None:
        """None if nothing is there."""
        return self._svm.get_account(key)

    def owned_by(self, program: Pubkey) -> list[Pubkey]:
        """The addresses of all accounts of a program."""
        return [key for key, _ in self._svm.get_program_accounts(program)]

    def rent(self, size_bytes: int) -> int:
        """Lamports that an account of this size must hold."""
        return self._svm.minimum_balance_for_rent_exemption(size_bytes)

    def put(self, key: Pubkey, account: Account | None) -> None:
        """Write past all programs: for genesis and for taking back."""
        self._svm.set_account(key, account or Account(0, b"", SYSTEM, executable=False, rent_epoch=0))

    def keys(self, transaction: VersionedTransaction) -> Keys:
        """Resolve lookup tables. Raises LookupError if one is missing or too short."""
        message = transaction.message
        lookups = getattr(message, "address_table_lookups", None) or ()
        writable, readonly = [], []
        for lookup in lookups:
            table = self._table(lookup.account_key)
            writable += [table[index] for index in lookup.writable_indexes]
            readonly += [table[index] for index in lookup.readonly_indexes]
        return Keys(tuple(message.account_keys), tuple(writable), tuple(readonly))

    def execute(self, transaction: VersionedTransaction) -> Execution:
        """Run it for good. Raises LookupError for a bad lookup table."""
        keys = self.keys(transaction)
        before = tuple(self.account(key) for key in keys.all)
        tokens_before = self._token_balances(before)
        answer = self._svm.send_transaction(transaction)
        arithmetic.restore()
        after = tuple(self.account(key) for key in keys.all)
        failed = isinstance(answer, FailedTransactionMetadata)
        return Execution(
            transaction=transaction,
            keys=keys,
            err=failure(answer.err()) if isinstance(answer, FailedTransactionMetadata) else None,
            meta=answer.meta() if isinstance(answer, FailedTransactionMetadata) else answer,
            before=before,
            after=after,
            tokens_before=tokens_before,
            tokens_after=tokens_before if failed else self._token_balances(after),
        )

    def simulate(self, transaction: VersionedTransaction) -> tuple[Any, TransactionMetadata]:
        """What it would do: its error (None if it would go through) and what it would log."""
        answer = self._svm.simulate_transaction(transaction)
        arithmetic.restore()
        if isinstance(answer, FailedTransactionMetadata):
            return failure(answer.err()), answer.meta()
        return None, answer.meta()

    def take_back(self, execution: Execution) -> None:
        """Restore what it found. Those that ran later have to be taken back first."""
        for key, account, left in zip(execution.keys.all, execution.before, execution.after, strict=True):
            if account != left:
                self.put(key, account)

    def _table(self, key: Pubkey) -> list[Pubkey]:
        account = self.account(key)
        if account is None or account.owner != LOOKUP_TABLE:
            raise LookupError(f"no lookup table at {key}")
        listed = account.data[_TABLE_HEADER_BYTES:]
        return [Pubkey.from_bytes(listed[at : at + 32]) for at in range(0, len(listed), 32)]

    def _token_balances(self, accounts: Sequence[Account | None]) -> tuple[TokenBalance, ...]:
        found = []
        for index, account in enumerate(accounts):
            state = tokens.token_account(account)
            if account is None or state is None:
                continue
            mint = tokens.mint(self.account(state.mint))
            decimals = _NATIVE_DECIMALS if mint is None else mint.decimals
            found.append(TokenBalance(index, state.mint, state.owner, account.owner, state.amount, decimals))
        return tuple(found)


def _native_mint() -> bytes:
    """The mint of wrapped SOL, which LiteSVM has not: no authority, no supply, initialised."""
    return bytes(44) + bytes([_NATIVE_DECIMALS, 1]) + bytes(36)
