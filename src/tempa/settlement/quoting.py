"""Making quotes: what an account is asked to pay for an instance, or why it cannot be."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tempa.core.errors import Problem, Refusal
from tempa.core.ids import is_id, new_id
from tempa.settlement.model import SOL
from tempa.settlement.quotes import (
    AMOUNT_MAX,
    REFERENCE_BYTES,
    Closed,
    PriceOffer,
    new_quote,
    price_in,
    reference_from,
)
from tempa.settlement.rentals import GRANT_SECONDS_MAX

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from tempa.core.clock import Clock
    from tempa.settlement.model import Treasury, TreasuryAccount
    from tempa.settlement.ports import SettlementStore
    from tempa.settlement.quotes import NewQuote, Price, Quote
    from tempa.settlement.rentals import GpuInstance
    from tempa.settlement.wire import PriceOfInstance


_RETRY_SECONDS = 5  # by then a node that answers at all has answered
_PATIENCE_SECONDS = 5.0  # a server that has just started knows its treasury within a second


def new_reference() -> str:
    """A key that nobody has seen, and nobody guesses."""
    return reference_from(secrets.token_bytes(REFERENCE_BYTES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoting:
    """Makes quotes whose price is locked for `lock_seconds`.

    `treasury` gives what is watched at present; it is waited for so many seconds while that is not known, and
    None then. Without it, no payments are taken here.
    """

    store: SettlementStore
    treasury: Callable[[float], Awaitable[Treasury | None]] | None
    clock: Clock
    lock_seconds: float
    new_reference: Callable[[], str] = new_reference

    async def quote(self, account: str, gpu_instance_id: str, asset: str, seconds: int) -> Quote:
        """An open quote of `account`.

        Raises `Refusal`: `payments-not-configured`, `treasury-unknown`, `not-found`, `instance-rented` (by
        someone else), `instance-suspended`, and `invalid-request` for an asset or a time that cannot be had.
        """
        treasury = await self._taken()
        instance = await self._instance(gpu_instance_id)
        offer = self._offer(account, instance, asset, seconds, treasury)
        opened = await self.store.open_quote(offer)
        if isinstance(opened, Closed):
            raise _closed(opened, gpu_instance_id)
        return opened

    async def assets(self, gpu_instance_id: str) -> tuple[str, ...]:
        """In which assets an instance can be paid now, in the order of its prices. Raises `Refusal`."""
        return payable((await self._instance(gpu_instance_id)).prices, await self._taken())

    async def offers(self, prices: Sequence[PriceOfInstance]) -> tuple[PriceOffer, ...]:
        """Prices as they are kept. Raises `Refusal` for what the treasury, if it is known, does not take."""
        treasury = None if self.treasury is None else await self.treasury(_PATIENCE_SECONDS)
        problems = [] if treasury is None else _untaken(prices, treasury)
        if problems:
            raise Refusal("invalid-request", problems[0].message, tuple(problems))
        return tuple(PriceOffer(price.asset, int(price.amount), price.seconds) for price in prices)

    async def _taken(self) -> Treasury:
        if self.treasury is None:
            raise Refusal(
                "payments-not-configured",
                "This server takes no payments. Its operator has to set solana.treasury and solana.rpc_urls.",
            )
        treasury = await self.treasury(_PATIENCE_SECONDS)
        if treasury is None:
            raise Refusal(
                "treasury-unknown",
                "The treasury's accounts could not be looked at on the chain yet. Try again in a moment.",
                headers={"Retry-After": str(_RETRY_SECONDS)},
            )
        return treasury

    async def _instance(self, gpu_instance_id: str) -> GpuInstance:
        known = is_id(gpu_instance_id, "gpu")
        instance = await self.store.instance(gpu_instance_id) if known else None
        if instance is None:
            raise unknown_instance(gpu_instance_id)
        return instance

    def _offer(
        self, account: str, instance: GpuInstance, asset: str, seconds: int, treasury: Treasury
    ) -> NewQuote:
        price, row = price_in(instance.prices, asset), _row(treasury, asset)
        if price is None or row is None:
            raise _not_payable(asset, payable(instance.prices, treasury))
        self._check_seconds(account, instance, seconds)
        _check_amount(price, seconds, treasury.dust.get(asset, 0))
        return new_quote(
            quote_id=new_id("quo"),
            account=account,
            gpu_instance_id=instance.id,
            seconds=seconds,
            price=price,
            treasury=row,
            reference=self.new_reference(),
            now=self.clock.now(),
            lock_seconds=self.lock_seconds,
        )

    def _check_seconds(self, account: str, instance: GpuInstance, seconds: int) -> None:
        """A payment for more would wait: no rental ends later than so far from now."""
        left = 0.0
        if instance.rental is not None and instance.renter == account:
            left = max(0.0, (instance.rental.expires_at - self.clock.now()).total_seconds())
        most = int(GRANT_SECONDS_MAX - left)
        if not 1 <= seconds <= most:
            raise _wrong_seconds(f"Must be from 1 to {most}.", most)


def payable(prices: Collection[PriceOffer], treasury: Treasury) -> tuple[str, ...]:
    """The assets that have a price, and an account of the treasury that may take them now."""
    return tuple(price.asset for price in prices if _row(treasury, price.asset) is not None)


def unknown_instance(gpu_instance_id: str) -> Refusal:
    """404."""
    return Refusal("not-found", f"There is no GPU instance {gpu_instance_id[:80]}.")


def _row(treasury: Treasury, asset: str) -> TreasuryAccount | None:
    rows = (row for row in treasury.accounts if row.asset == asset and row.refusal is None)
    return next(rows, None)


def _check_amount(price: Price, seconds: int, dust: int) -> None:
    """Between what counts as a payment at all, and what an account can hold."""
    amount = price.amount_for(seconds)
    if amount > AMOUNT_MAX:
        most = AMOUNT_MAX * price.numerator // price.denominator
        raise _wrong_seconds(f"At most {most}: no account holds the money for more.", most)
    if amount < dust:
        least = (dust - 1) * price.numerator // price.denominator + 1
        raise _wrong_seconds(f"At least {least}: a smaller payment would not be credited by itself.", least)


def _untaken(prices: Sequence[PriceOfInstance], treasury: Treasury) -> list[Problem]:
    """An asset that is listed but refused at present is no mistake: its watch may find it well again."""
    taken = tuple(dict.fromkeys(row.asset for row in treasury.accounts))
    message = f"The treasury does not take this asset; see solana.mints. It takes: {', '.join(taken)}."
    return [
        Problem(f"/prices/{place}/asset", message, ", ".join(taken))
        for place, price in enumerate(prices)
        if price.asset not in taken
    ]


def _not_payable(asset: str, assets: Sequence[str]) -> Refusal:
    named = asset if asset == SOL else f"the token {asset[:80]}"
    offered = f"Use one of: {', '.join(assets)}." if assets else "There is no other either at present."
    message = f"This instance cannot be paid in {named}. {offered}"
    return Refusal("invalid-request", message, (Problem("/asset", message, ", ".join(assets)),))


def _wrong_seconds(message: str, limit: int) -> Refusal:
    return Refusal("invalid-request", message, (Problem("/seconds", message, limit),))


def _closed(closed: Closed, gpu_instance_id: str) -> Refusal:
    match closed.reason:
        case "rented":
            detail = "Somebody else rents this instance. GET /v1/gpu-instances shows which are free."
            return Refusal("instance-rented", detail)
        case "suspended":
            return Refusal("instance-suspended", "The operator has suspended this instance. Try again later.")
        case _:
            return unknown_instance(gpu_instance_id)
