"""A payment as a wallet makes it from a Solana Pay request, and over JSON-RPC from a process of its own."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

import httpx2
from solders.hash import Hash
from solders.pubkey import Pubkey

from tempa.testing.devchain import instructions as make
from tempa.testing.devchain.programs import TOKEN, associated_account
from tempa.testing.devchain.rpc.call import DEV_CHAIN
from tempa.testing.devchain.wallet import keypair, signed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from solders.instruction import Instruction
    from solders.keypair import Keypair

SOL_DECIMALS = 9
_TIMEOUT_SECONDS = 10.0


class PaymentFault(Exception):  # noqa: N818 - it says what is the case
    """The chain refused a payment, or cannot be reached; says why."""

    def __init__(self, message: str, *, is_unreachable: bool = False) -> None:
        super().__init__(message)
        self.is_unreachable = is_unreachable


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """Who gets how much of what. `to` is a wallet and no token account; `amount` in base units.

    `asset` is `SOL` or a mint's address, `decimals` are its own; `program` is the mint's token program.
    """

    to: Pubkey
    asset: str
    amount: int
    references: tuple[Pubkey, ...] = ()
    memo: str | None = None
    version: int | str = "legacy"
    decimals: int = 6
    program: Pubkey = TOKEN

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Self:
        """From JSON: `to`, `asset`, `amount`, and what is optional. Raises KeyError, ValueError."""
        reference = told.get("reference")
        references = reference if isinstance(reference, list) else [reference] if reference else []
        version = told.get("version", "legacy")
        if version not in ("legacy", 0, 1):
            raise ValueError("version must be legacy, 0 or 1")
        return cls(
            to=Pubkey.from_string(told["to"]),
            asset=told.get("asset", "SOL"),
            amount=int(told["amount"]),
            references=tuple(map(Pubkey.from_string, references)),
            memo=told.get("memo"),
            version=version,
            decimals=told.get("decimals", 6),
            program=Pubkey.from_string(told["program"]) if told.get("program") else TOKEN,
        )

    def instructions(self, payer: Pubkey) -> list[Instruction]:
        """The memo stands right before the transfer, and the transfer last: Solana Pay asks for that."""
        steps = [] if self.memo is None else [make.memo(self.memo)]
        return [*steps, make.labelled(self._transfer(payer), *self.references)]

    def _transfer(self, payer: Pubkey) -> Instruction:
        if self.asset == "SOL":
            return make.pay_sol(payer, self.to, self.amount)
        mint = Pubkey.from_string(self.asset)
        source, target = (associated_account(owner, mint, self.program) for owner in (payer, self.to))
        return make.pay_checked(source, mint, target, payer, self.amount, self.decimals, self.program)


def payment_of(url: str, decimals: int) -> Payment:
    """The transfer that a `solana:` URL asks for; `decimals` of its asset. Raises ValueError.

    Source: Solana Pay specification 1.1, transfer request.
    """
    scheme, _, rest = url.partition(":")
    recipient, _, query = rest.partition("?")
    told = parse_qs(query, strict_parsing=True)
    if scheme != "solana" or "amount" not in told:
        raise ValueError("not a Solana Pay transfer request with an amount")
    base_units = Decimal(told["amount"][0]).scaleb(decimals)
    if base_units != base_units.to_integral_value():
        raise ValueError(f"more than {decimals} decimals")
    return Payment(
        to=Pubkey.from_string(unquote(recipient)),
        asset=told.get("spl-token", ["SOL"])[0],
        amount=int(base_units),
        references=tuple(map(Pubkey.from_string, told.get("reference", []))),
        memo=told["memo"][0] if "memo" in told else None,
        decimals=decimals,
    )


class Rpc:
    """As little of a JSON-RPC client as paying takes. Raises PaymentFault."""

    def __init__(self, url: str) -> None:
        self._url = url
        parts = urlsplit(url)
        self._shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"  # the rest may be a key

    def call(self, method: str, *params: Any) -> Any:
        """The result."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
        try:
            answer = httpx2.post(self._url, json=request, timeout=_TIMEOUT_SECONDS, trust_env=False).json()
        except (httpx2.TransportError, ValueError) as error:
            raise PaymentFault(
                f"No development chain answers at {self._shown}", is_unreachable=True
            ) from error
        if not isinstance(answer, dict) or not {"error", "result"} & answer.keys():
            raise PaymentFault(f"What answers at {self._shown} is no node of a chain")
        if "error" in answer:
            raise PaymentFault(f"The chain says: {answer['error']['message']}")
        return answer["result"]

    def require_dev_chain(self) -> None:
        """Everybody knows the key of the wallet that pays: it is for the development chain alone."""
        version = self.call("getVersion")
        if not isinstance(version, dict) or version.get(DEV_CHAIN) is not True:
            raise PaymentFault(f"The chain at {self._shown} is no development chain: nothing is paid there")

    def asset(self, asset: str) -> tuple[int, Pubkey]:
        """The decimals of an asset, and the token program that its mint is of."""
        if asset == "SOL":
            return SOL_DECIMALS, TOKEN
        config = {"encoding": "jsonParsed", "commitment": "confirmed"}
        found = self.call("getAccountInfo", asset, config)["value"]
        if found is None or not isinstance(found["data"], dict) or found["data"]["parsed"]["type"] != "mint":
            raise PaymentFault(f"There is no mint {asset} on this chain")
        return found["data"]["parsed"]["info"]["decimals"], Pubkey.from_string(found["owner"])


def pay(rpc: Rpc, payment: Payment, payer: Keypair | None = None) -> str:
    """Send it from the development chain's funded wallet, or another one; the signature.

    Raises PaymentFault.
    """
    pair = payer or keypair("wallet", "payer")
    latest = rpc.call("getLatestBlockhash", {"commitment": "confirmed"})["value"]["blockhash"]
    steps = payment.instructions(pair.pubkey())
    raw = signed(pair, steps, Hash.from_string(latest), version=payment.version)
    return str(rpc.call("sendTransaction", base64.b64encode(raw).decode(), {"encoding": "base64"}))


def pay_request(rpc: Rpc, url: str, asset: str) -> str:
    """Pay what a Solana Pay URL asks for, in the asset that it names; the signature. Raises PaymentFault.

    On the development chain only.
    """
    rpc.require_dev_chain()
    decimals, program = rpc.asset(asset)
    try:
        payment = payment_of(url, decimals)
    except ValueError as error:
        raise PaymentFault(f"The quote's Solana Pay URL cannot be paid: {error}") from error
    if payment.asset != asset:
        raise PaymentFault(f"The quote is in {asset}, its Solana Pay URL in {payment.asset}")
    return pay(rpc, replace(payment, program=program))
