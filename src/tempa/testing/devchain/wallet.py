"""A wallet for tests and `tempa dev pay`: keys, mints, accounts, and transactions of every version.

chain = Cluster()
payer = Faucet(chain).open_wallet("payer")
mint = payer.mint("usd", decimals=6)
payer.send(pay_sol(payer.key, treasury, 5))
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from solders.account import Account
from solders.address_lookup_table_account import AddressLookupTableAccount
from solders.hash import Hash
from solders.keypair import Keypair
from solders.message import Message, MessageV0, MessageV1, TransactionConfig
from solders.system_program import (
    AdvanceNonceAccountParams,
    CreateAccountParams,
    advance_nonce_account,
    create_account,
    create_nonce_account,
)
from solders.transaction import VersionedTransaction

from tempa.testing.devchain import instructions as make
from tempa.testing.devchain.admission import durable_nonce
from tempa.testing.devchain.blocks import Commitment
from tempa.testing.devchain.extensions import asked, mint_bytes
from tempa.testing.devchain.programs import LOOKUP_TABLE, SYSTEM, TOKEN, TOKEN_2022, associated_account

if TYPE_CHECKING:
    from collections.abc import Sequence

    from solders.instruction import Instruction
    from solders.message import VersionedMessage
    from solders.pubkey import Pubkey

    from tempa.testing.devchain.cluster import Cluster
    from tempa.testing.devchain.extensions import Extension

SOL = 1_000_000_000  # lamports
_TOKEN_ACCOUNT_BYTES = 165
_NONCE_BYTES = 80
_TABLE_HEADER = struct.pack("<IQQBB32sH", 1, 2**64 - 1, 0, 0, 0, bytes(32), 0)  # active, of nobody
_V1_UNITS = 200_000


def keypair(*words: str) -> Keypair:
    """The same words, the same key."""
    return Keypair.from_seed(hashlib.sha256(" ".join(words).encode()).digest())


def signed(
    payer: Keypair,
    instructions: Sequence[Instruction],
    blockhash: Hash,
    *,
    version: int | str = "legacy",
    signers: Sequence[Keypair] = (),
    tables: Sequence[AddressLookupTableAccount] = (),
) -> bytes:
    """A whole transaction, ready to send. `payer` pays the fee; lookup tables make it version 0."""
    message = _message(payer.pubkey(), instructions, blockhash, 0 if tables else version, tables)
    needed = message.account_keys[: message.header.num_required_signatures]
    keys = {key.pubkey(): key for key in (payer, *signers)}
    return bytes(VersionedTransaction(message, [keys[key] for key in needed]))


def put_table(chain: Cluster, addresses: Sequence[Pubkey], *words: str) -> AddressLookupTableAccount:
    """A lookup table that stands since genesis."""
    key = keypair("table", *words).pubkey()
    data = _TABLE_HEADER + b"".join(map(bytes, addresses))
    lamports = chain.bank.rent(len(data))
    chain.bank.put(key, Account(lamports, data, LOOKUP_TABLE, executable=False, rent_epoch=0))
    return AddressLookupTableAccount(key, list(addresses))


def open_nonce(wallet: Wallet, name: str) -> Pubkey:
    """A durable nonce of `wallet`; its address."""
    pair = keypair("nonce", name)
    made = create_nonce_account(wallet.key, pair.pubkey(), wallet.key, wallet.chain.bank.rent(_NONCE_BYTES))
    wallet.send(*made, signers=[pair])
    return pair.pubkey()


def with_nonce(wallet: Wallet, nonce: Pubkey, *instructions: Instruction) -> bytes:
    """A transaction that does not grow old; once it has landed, no other with the same nonce can."""
    value = durable_nonce(wallet.chain.bank.account(nonce))
    assert value is not None, f"{nonce} is no nonce account"
    advance = advance_nonce_account(
        AdvanceNonceAccountParams(nonce_pubkey=nonce, authorized_pubkey=wallet.key)
    )
    return signed(wallet.pair, [advance, *instructions], Hash(value))


@dataclass(frozen=True, slots=True)
class Wallet:
    """A key with a chain to use it on."""

    chain: Cluster
    pair: Keypair

    @property
    def key(self) -> Pubkey:
        """Its address."""
        return self.pair.pubkey()

    def signed(
        self,
        *instructions: Instruction,
        version: int | str = "legacy",
        signers: Sequence[Keypair] = (),
        fee_payer: Keypair | None = None,
        tables: Sequence[AddressLookupTableAccount] = (),
    ) -> bytes:
        """A transaction; a `fee_payer` makes it a relayed one.

        On the newest final blockhash: no fork can take that away, so that the bytes can land again.
        """
        payer = fee_payer or self.pair
        keys = (self.pair, *signers)
        hash_now = self.chain.block(Commitment.FINALIZED).blockhash
        return signed(payer, instructions, hash_now, version=version, signers=keys, tables=tables)

    def send(
        self,
        *instructions: Instruction,
        version: int | str = "legacy",
        signers: Sequence[Keypair] = (),
        fee_payer: Keypair | None = None,
        tables: Sequence[AddressLookupTableAccount] = (),
        skip_preflight: bool = False,
    ) -> str:
        """Sign and send; the signature. What fails lands only without preflight. Raises RpcFault."""
        raw = self.signed(*instructions, version=version, signers=signers, fee_payer=fee_payer, tables=tables)
        return self.chain.submit(raw, skip_preflight=skip_preflight)

    def account(self, mint: Pubkey, program: Pubkey = TOKEN) -> Pubkey:
        """Where it keeps a token."""
        return associated_account(self.key, mint, program)

    def mint(
        self,
        name: str,
        *,
        decimals: int = 6,
        extensions: tuple[Extension, ...] = (),
        program: Pubkey | None = None,
    ) -> Pubkey:
        """Create a mint that this wallet may mint from and freeze; with extensions it is Token-2022's."""
        program = program or (TOKEN_2022 if extensions else TOKEN)
        pair = keypair("mint", name)
        lamports = self.chain.bank.rent(mint_bytes(extensions))
        # Extensions of changing size are not among ours: the space is right from the start.
        created = _created(self.key, pair.pubkey(), lamports, mint_bytes(extensions), program)
        wanted = [asked(extension, pair.pubkey()) for extension in extensions]
        opened = make.open_mint(pair.pubkey(), decimals, self.key, self.key, program)
        self.send(created, *wanted, opened, signers=[pair])
        return pair.pubkey()

    def give(self, mint: Pubkey, owner: Pubkey, amount: int, program: Pubkey = TOKEN) -> Pubkey:
        """Open the owner's associated account, and mint into it; its address."""
        account = associated_account(owner, mint, program)
        steps = [make.open_associated(self.key, owner, mint, program)]
        if amount:
            steps.append(make.mint_to(mint, account, self.key, amount, program))
        self.send(*steps)
        return account

    def open_other_account(self, name: str, mint: Pubkey, owner: Pubkey) -> Pubkey:
        """A token account of `owner` that is not the associated one."""
        pair = keypair("account", name)
        lamports = self.chain.bank.rent(_TOKEN_ACCOUNT_BYTES)
        created = _created(self.key, pair.pubkey(), lamports, _TOKEN_ACCOUNT_BYTES, TOKEN)
        self.send(created, make.open_account(pair.pubkey(), mint, owner), signers=[pair])
        return pair.pubkey()


class Faucet:
    """Where all SOL of a development chain comes from: by real transactions, so that forks take them back."""

    def __init__(self, chain: Cluster) -> None:
        self._wallet = Wallet(chain, keypair("faucet", chain.seed))
        rich = Account(500_000_000 * SOL, b"", SYSTEM, executable=False, rent_epoch=0)
        chain.bank.put(self._wallet.key, rich)
        self._given = 0

    @property
    def wallet(self) -> Wallet:
        """The faucet's own."""
        return self._wallet

    def drop(self, target: Pubkey, lamports: int) -> str:
        """Send lamports; the signature. Two equal drops in one slot are two transactions."""
        self._given += 1
        label = make.memo(f"drop {self._given}")
        return self._wallet.send(make.pay_sol(self._wallet.key, target, lamports), label)

    def open_wallet(self, *words: str, lamports: int = 100 * SOL) -> Wallet:
        """A wallet with SOL in it; the same words, the same key."""
        wallet = Wallet(self._wallet.chain, keypair("wallet", *words))
        self.drop(wallet.key, lamports)
        return wallet


def _created(payer: Pubkey, key: Pubkey, lamports: int, size_bytes: int, owner: Pubkey) -> Instruction:
    return create_account(
        CreateAccountParams(
            from_pubkey=payer, to_pubkey=key, lamports=lamports, space=size_bytes, owner=owner
        )
    )


def _message(
    payer: Pubkey,
    instructions: Sequence[Instruction],
    blockhash: Hash,
    version: int | str,
    tables: Sequence[AddressLookupTableAccount],
) -> VersionedMessage:
    if version == "legacy":
        return Message.new_with_blockhash(instructions, payer, blockhash)
    if version == 0:
        return MessageV0.try_compile(payer, instructions, tables, blockhash)
    units = TransactionConfig(compute_unit_limit=_V1_UNITS)
    return MessageV1.try_compile(payer, instructions, blockhash, units)
