"""Addresses of the programs and of the one native mint, as on every cluster."""

from __future__ import annotations

from solders.pubkey import Pubkey

SYSTEM = Pubkey.from_string("11111111111111111111111111111111")
TOKEN = Pubkey.from_string("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA")
TOKEN_2022 = Pubkey.from_string("TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb")
ASSOCIATED_TOKEN = Pubkey.from_string("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL")
MEMO = Pubkey.from_string("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr")
MEMO_V1 = Pubkey.from_string("Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo")
LOOKUP_TABLE = Pubkey.from_string("AddressLookupTab1e1111111111111111111111111")
COMPUTE_BUDGET = Pubkey.from_string("ComputeBudget111111111111111111111111111111")
RECENT_BLOCKHASHES = Pubkey.from_string("SysvarRecentB1ockHashes11111111111111111111")
NATIVE_MINT = Pubkey.from_string("So11111111111111111111111111111111111111112")

TOKEN_PROGRAMS = frozenset({TOKEN, TOKEN_2022})
MEMO_PROGRAMS = frozenset({MEMO, MEMO_V1})


def associated_account(owner: Pubkey, mint: Pubkey, program: Pubkey = TOKEN) -> Pubkey:
    """Where `owner` keeps `mint` unless told otherwise."""
    return Pubkey.find_program_address([bytes(owner), bytes(program), bytes(mint)], ASSOCIATED_TOKEN)[0]
