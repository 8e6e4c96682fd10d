"""The jobs slice asks whether a GPU instance may be used; the settlement slice knows who rents it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tempa.core.errors import Refusal
from tempa.jobs.instances import unknown_instance
from tempa.jobs.model import Tenure
from tempa.settlement.model import InstanceStatus, QuoteStatus
from tempa.settlement.rental_views import quote_view

if TYPE_CHECKING:
    from datetime import datetime

    from tempa.core.clock import Clock
    from tempa.jobs.model import Tenant
    from tempa.settlement.ports import SettlementStore
    from tempa.settlement.quotes import NewQuote, PriceOffer, Quote
    from tempa.settlement.quoting import Quoting
    from tempa.settlement.rentals import GpuInstance

_CONFLICT = 409
_QUOTES_LOOKED_AT = 100  # of the account's latest
_LOCK_LEFT_MIN = 0.25  # of the time a price is locked: who is handed a quote must be able to pay it in time


@dataclass(kw_only=True)
class RentalAllowance:
    """`tempa.jobs.ports.Allowance`, answered from the rentals."""

    store: SettlementStore
    clock: Clock
    quoting: Quoting
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def tenure(self, tenant: Tenant) -> Tenure:
        """A rental is over when its end was written down: until then a payment may prolong it."""
        instance = await self.store.instance(tenant.gpu_instance_id)
        if instance is None or instance.renter != tenant.account:
            return Tenure.OVER
        is_active = instance.status(self.clock.now()) is InstanceStatus.ACTIVE
        return Tenure.ACTIVE if is_active else Tenure.HELD

    async def refusal(self, tenant: Tenant) -> Refusal:
        """402 `rental-required`, with a quote if it can be paid for; 409 if it cannot be had; 422 unknown."""
        instance = await self.store.instance(tenant.gpu_instance_id)
        if instance is None:
            return unknown_instance()
        if instance.suspended_at is not None:
            return Refusal("instance-suspended", "The operator has suspended this GPU instance.")
        if instance.renter not in (None, tenant.account):
            detail = "Somebody else rents this GPU instance. GET /v1/gpu-instances shows which are free."
            return Refusal("instance-rented", detail)
        return await self._rental_required(tenant, instance)

    async def _rental_required(self, tenant: Tenant, instance: GpuInstance) -> Refusal:
        what = "rental of it has run out" if instance.renter else "account does not rent this GPU instance"
        try:
            quote = await self._quote(tenant.account, instance)
        except Refusal as why:
            if why.status == _CONFLICT:  # rented or suspended in this moment
                return why
            detail = f"Your {what}, and there is no quote: {why.detail}"
            return Refusal("rental-required", detail, headers=why.headers)
        if quote is None:
            return Refusal("rental-required", f"Your {what}, and it cannot be paid for at present.")
        shown = quote_view(quote)
        return Refusal(
            "rental-required",
            f"Your {what}. Pay the quote, and ask again once it is credited.",
            extra={"quote": shown, "solana_pay_url": shown["solana_pay_url"]},
        )

    async def _quote(self, account: str, instance: GpuInstance) -> Quote | None:
        """At the first price that can be paid; the open one again, so that asking on makes no more of them.

        None: at none of its prices. Raises `Refusal`.
        """
        assets = await self.quoting.assets(instance.id)
        offer = next((offer for offer in instance.prices if offer.asset in assets), None)
        if offer is None:
            return None
        async with self._one_at_a_time:
            open_quote = await self._standing(account, instance.id, offer)
            if open_quote is not None:
                return open_quote
            return await self.quoting.quote(account, instance.id, offer.asset, offer.seconds)

    async def _standing(self, account: str, gpu_instance_id: str, offer: PriceOffer) -> Quote | None:
        now, terms = self.clock.now(), (gpu_instance_id, offer.asset, offer.seconds, offer.price)
        for quote in await self.store.quotes(account, _QUOTES_LOOKED_AT, None):
            made = quote.offer
            same = (made.gpu_instance_id, made.asset, made.seconds, made.price) == terms
            if same and quote.status is QuoteStatus.OPEN and _is_payable(made, now):
                return quote
        return None


def _is_payable(offer: NewQuote, now: datetime) -> bool:
    return offer.expires_at - now >= _LOCK_LEFT_MIN * (offer.expires_at - offer.created_at)
