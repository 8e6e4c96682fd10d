"""A treasury and answers of nodes, made by hand: what each account held before and after."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from typing import Any

from tempa.core.base58 import encode
from tempa.settlement.model import SOL, Treasury, TreasuryAccount

TOKEN = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"
TOKEN_2022 = "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb"
MEMO = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr"
WRAPPED_SOL = "So11111111111111111111111111111111111111112"
SYSTEM = "1" * 32


@cache
def key(name: str) -> str:
    """An address."""
    return encode(hashlib.sha256(name.encode()).digest())


@cache
def signature_of(name: str) -> str:
    return encode(hashlib.sha512(name.encode()).digest())


CLUSTER = key("genesis")
WALLET, PAYER, RELAYER = key("treasury"), key("payer"), key("relayer")
USD, EUR = key("usd"), key("eur")
USD_ACCOUNT, EUR_ACCOUNT, PAYER_USD = key("treasury usd"), key("treasury eur"), key("payer usd")
SIGNATURE = signature_of("payment")

SOL_ROW = TreasuryAccount(asset=SOL, address=WALLET, owner=WALLET, program=None, decimals=9)
USD_ROW = TreasuryAccount(asset=USD, address=USD_ACCOUNT, owner=WALLET, program=TOKEN, decimals=6)
EUR_ROW = TreasuryAccount(asset=EUR, address=EUR_ACCOUNT, owner=WALLET, program=TOKEN_2022, decimals=2)
TREASURY = Treasury(cluster=CLUSTER, accounts=(SOL_ROW, USD_ROW, EUR_ROW))


@dataclass(frozen=True)
class Held:
    """A token account. `before` or `after` is None where it does not exist."""

    address: str
    before: int | None
    after: int | None
    mint: str = USD
    owner: str = WALLET
    program: str = TOKEN
    decimals: int = 6
    mint_before: str | None = None


def answer(
    *held: Held,
    lamports: dict[str, tuple[int, int]] | None = None,
    fee: int = 5000,
    keys: tuple[str, ...] = (),
    signers: tuple[str, ...] = (PAYER,),
    instructions: tuple[dict[str, Any], ...] = (),
    inner: tuple[dict[str, Any], ...] = (),
    error: Any = None,
    **more: Any,
) -> dict[str, Any]:
    """As `getTransaction` gives it in `jsonParsed`. The first of `signers` pays the fee."""
    moved = {signers[0]: (10**12, 10**12 - fee), **(lamports or {})}
    programs = [one["programId"] for one in (*instructions, *(i for g in inner for i in g["instructions"]))]
    listed = list(dict.fromkeys([*signers, *(one.address for one in held), *moved, *keys, *programs]))
    balances = [moved.get(one, (1, 1)) for one in listed]
    return {
        "slot": 400,
        "blockTime": 1_790_000_000,
        "version": 0,
        "transaction": {
            "signatures": [SIGNATURE],
            "message": {
                "accountKeys": [
                    {"pubkey": one, "signer": one in signers, "writable": True, "source": "transaction"}
                    for one in listed
                ],
                "recentBlockhash": key("block"),
                "instructions": list(instructions),
            },
        },
        "meta": {
            "err": error,
            "status": {"Ok": None} if error is None else {"Err": error},
            "fee": fee,
            "preBalances": [before for before, _ in balances],
            "postBalances": [after for _, after in balances],
            "preTokenBalances": [
                _token(listed, one, one.before, one.mint_before or one.mint)
                for one in held
                if one.before is not None
            ],
            "postTokenBalances": [
                _token(listed, one, one.after, one.mint) for one in held if one.after is not None
            ],
            "innerInstructions": list(inner),
            "logMessages": [],
        },
        **more,
    }


def paid(amount: int, **more: Any) -> dict[str, Any]:
    """`amount` of USD from the payer to the treasury."""
    return answer(Held(USD_ACCOUNT, 100, 100 + amount), Held(PAYER_USD, amount + 7, 7, owner=PAYER), **more)


def memo(text: str) -> dict[str, Any]:
    return {"program": "spl-memo", "programId": MEMO, "parsed": text, "stackHeight": 1}


def transfer(amount: int, *labels: str, to: str = USD_ACCOUNT, authority: str = PAYER) -> dict[str, Any]:
    """As nodes parse it: accounts behind the authority are taken for the signers of a multisig."""
    who: dict[str, Any] = (
        {"multisigAuthority": authority, "signers": list(labels)} if labels else {"authority": authority}
    )
    info = {"source": PAYER_USD, "destination": to, "amount": str(amount), **who}
    return {"program": "spl-token", "programId": TOKEN, "parsed": {"type": "transfer", "info": info}}


def _token(listed: list[str], held: Held, amount: int | None, mint: str) -> dict[str, Any]:
    return {
        "accountIndex": listed.index(held.address),
        "mint": mint,
        "owner": held.owner,
        "programId": held.program,
        "uiTokenAmount": {
            "amount": str(amount),
            "decimals": held.decimals,
            "uiAmount": 123456.789,  # a float, and a lie: never to be looked at
            "uiAmountString": "123456.789",
        },
    }
