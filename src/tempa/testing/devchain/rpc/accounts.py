"""Methods about accounts and balances, each as of a commitment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.testing.devchain import tokens
from tempa.testing.devchain.accounts import account_json
from tempa.testing.devchain.admission import RpcFault
from tempa.testing.devchain.programs import TOKEN_PROGRAMS
from tempa.testing.devchain.rpc.call import encoding, public_key, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from solders.pubkey import Pubkey

    from tempa.testing.devchain.rpc.call import Call

ACCOUNTS_MAX = 100
_ACCOUNT_BYTES_MAX = 10 * 1024 * 1024
_ENCODINGS = ("base58", "base64", "jsonParsed")


def _balance(call: Call) -> dict[str, Any]:
    commitment = call.commitment(call.config(1))
    account = call.node.account(public_key(call.argument(0)), commitment)
    return call.in_context(0 if account is None else account.lamports, commitment)


def _account(call: Call) -> dict[str, Any]:
    config = call.config(1)
    commitment = call.commitment(config)
    account = call.node.account(public_key(call.argument(0)), commitment)
    value = account_json(call.node.cluster.bank, account, encoding(config, "base58", _ENCODINGS))
    return call.in_context(value, commitment)


def _accounts(call: Call) -> dict[str, Any]:
    keys, config = call.argument(0), call.config(1)
    if not isinstance(keys, list) or len(keys) > ACCOUNTS_MAX:
        raise RpcFault(-32602, f"Too many inputs provided; max {ACCOUNTS_MAX}")
    commitment, told = call.commitment(config), encoding(config, "base64", _ENCODINGS)
    accounts = [call.node.account(public_key(key), commitment) for key in keys]
    bank = call.node.cluster.bank
    return call.in_context([account_json(bank, account, told) for account in accounts], commitment)


def _token_accounts(call: Call) -> dict[str, Any]:
    owner, wanted, config = public_key(call.argument(0)), call.argument(1), call.config(2)
    commitment, told = call.commitment(config), encoding(config, "base58", _ENCODINGS)
    fits = _filter(wanted)
    found = []
    for key in sorted(_token_keys(call), key=bytes):
        account = call.node.account(key, commitment)
        state = tokens.token_account(account)
        if (
            account is not None
            and state is not None
            and state.owner == owner
            and fits(state.mint, account.owner)
        ):
            found.append({"pubkey": str(key), "account": account_json(call.node.cluster.bank, account, told)})
    return call.in_context(found, commitment)


def _filter(wanted: Any) -> Callable[[Pubkey, Pubkey], bool]:
    if isinstance(wanted, dict) and "mint" in wanted:
        mint = public_key(wanted["mint"])
        return lambda found, _program: found == mint
    if isinstance(wanted, dict) and "programId" in wanted:
        program = public_key(wanted["programId"])
        return lambda _mint, found: found == program
    raise RpcFault(-32602, "Invalid params: expected `mint` or `programId`.")


def _token_keys(call: Call) -> set[Pubkey]:
    """All that is there now, and what was closed in slots that are not final yet."""
    cluster = call.node.cluster
    keys = {key for program in TOKEN_PROGRAMS for key in cluster.bank.owned_by(program)}
    final = call.node.block(call.commitment({})).slot
    for block in cluster.blocks(final, cluster.tip.slot):
        for landed in block.landed:
            keys.update(landed.execution.keys.all)
    return keys


def _token_balance(call: Call) -> dict[str, Any]:
    commitment = call.commitment(call.config(1))
    state = tokens.token_account(call.node.account(public_key(call.argument(0)), commitment))
    if state is None:
        raise RpcFault(-32602, "Invalid param: could not find account")
    mint = tokens.mint(call.node.account(state.mint, commitment))
    decimals = 9 if mint is None else mint.decimals
    return call.in_context(tokens.ui_amount(state.amount, decimals), commitment)


def _supply(call: Call) -> dict[str, Any]:
    commitment = call.commitment(call.config(1))
    mint = tokens.mint(call.node.account(public_key(call.argument(0)), commitment))
    if mint is None:
        raise RpcFault(-32602, "Invalid param: could not find mint")
    return call.in_context(tokens.ui_amount(mint.supply, mint.decimals), commitment)


def _rent(call: Call) -> int:
    size_bytes = whole(call.argument(0), "size")
    if size_bytes > _ACCOUNT_BYTES_MAX:
        raise RpcFault(-32602, "Invalid params: data length is greater than an account's")
    return call.node.cluster.bank.rent(size_bytes)


METHODS: dict[str, Callable[[Call], Any]] = {
    "getBalance": _balance,
    "getAccountInfo": _account,
    "getMultipleAccounts": _accounts,
    "getTokenAccountsByOwner": _token_accounts,
    "getTokenAccountBalance": _token_balance,
    "getTokenSupply": _supply,
    "getMinimumBalanceForRentExemption": _rent,
}
