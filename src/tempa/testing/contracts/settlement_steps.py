"""Instances, quotes and payments for the settlement suites, and the usual steps with them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tempa.core import base58
from tempa.core.clock import to_ms
from tempa.core.ids import new_id
from tempa.settlement.inbox import Incoming
from tempa.settlement.model import Receipt, TreasuryAccount, Verdict
from tempa.settlement.post import Posted, Proven, Terms
from tempa.settlement.quotes import (
    NewQuote,
    Price,
    PriceOffer,
    Quote,
    new_quote,
    reference_from,
)
from tempa.settlement.rentals import NewInstance
from tempa.testing.contracts.samples import ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tempa.core.events import Event
    from tempa.settlement.model import Treasury
    from tempa.settlement.rentals import GpuInstance
    from tempa.testing.contracts.bench import StoreBench

_numbers = itertools.count(1)


def an_address() -> str:
    """An address that no other sample has."""
    return base58.encode(next(_numbers).to_bytes(32, "big"))


def a_signature() -> str:
    """A transaction's signature that no other sample has."""
    return base58.encode(b"\x07" * 32 + next(_numbers).to_bytes(32, "big"))


CLUSTER = an_address()
MINT = an_address()
WALLET = an_address()
TOKENS = TreasuryAccount(asset=MINT, address=an_address(), owner=WALLET, program=an_address(), decimals=6)
LAMPORTS = TreasuryAccount(asset="SOL", address=WALLET, owner=WALLET, program=None, decimals=9)
OPERATOR = "operator"
TERMS = Terms(operator=OPERATOR, dust={MINT: 10})

HOUR = PriceOffer(MINT, 7_200, 3_600)
"""Two base units a second."""

LOCK_SECONDS = 900.0


def known(treasury: Treasury | None) -> Callable[[float], Awaitable[Treasury | None]]:
    """A treasury that is known at once, or never."""

    async def waited(seconds: float) -> Treasury | None:
        assert seconds > 0
        return treasury

    return waited


async def an_instance(bench: StoreBench, *prices: PriceOffer) -> str:
    """The id of an instance that nobody has rented yet."""
    new = NewInstance(id=new_id("gpu"), name="H200 Nº 7", prices=prices or (HOUR,))
    return (await bench.store.add_instance(new)).id


def an_offer(
    bench: StoreBench,
    gpu_instance_id: str,
    seconds: int = 3_600,
    *,
    account: str = ACCOUNT,
    price: Price = HOUR.price,
    treasury: TreasuryAccount = TOKENS,
) -> NewQuote:
    """A quote that is not kept yet."""
    return new_quote(
        quote_id=new_id("quo"),
        account=account,
        gpu_instance_id=gpu_instance_id,
        seconds=seconds,
        price=price,
        treasury=treasury,
        reference=reference_from(next(_numbers).to_bytes(32, "little")),
        now=bench.clock.now(),
        lock_seconds=LOCK_SECONDS,
    )


async def a_quote(bench: StoreBench, gpu_instance_id: str, seconds: int = 3_600, **how: Any) -> NewQuote:
    """One that is kept. `how` as for `an_offer`."""
    opened = await bench.store.open_quote(an_offer(bench, gpu_instance_id, seconds, **how))
    assert isinstance(opened, Quote), opened
    return opened.offer


def a_receipt(bench: StoreBench, quote: NewQuote | None, amount: int, **changes: Any) -> Receipt:
    """`amount` of the quote's asset, by its reference, in a block of now. `changes` are its columns."""
    asset = MINT if quote is None else quote.asset
    receipt = Receipt(
        cluster=CLUSTER,
        signature=a_signature(),
        asset=asset,
        account=LAMPORTS.address if asset == "SOL" else TOKENS.address,
        amount=amount,
        slot=next(_numbers),
        index=0,
        block_time=to_ms(bench.clock.now()) // 1000,
        payer=an_address(),
        references=() if quote is None else (an_address(), quote.reference),
    )
    return replace(receipt, **changes)


def proven(*receipts: Receipt, terms: Terms = TERMS) -> Proven:
    """What one transaction paid."""
    signature = receipts[0].signature
    assert all(receipt.signature == signature for receipt in receipts), "one transaction"
    verdict = Verdict(signature=signature, slot=receipts[0].slot, receipts=receipts)
    return Proven(
        verdict=verdict, terms=terms, evidence=({"node": "a", "answer": {"slot": receipts[0].slot}},)
    )


async def pay(bench: StoreBench, quote: NewQuote | None, amount: int, **changes: Any) -> Receipt:
    """Post a payment of `amount`; it was not posted before."""
    receipt = a_receipt(bench, quote, amount, **changes)
    posted = await bench.store.post_credits(proven(receipt))
    assert posted.receipts == 1
    return receipt


async def the_quote(bench: StoreBench, offer: NewQuote) -> Quote:
    """As it stands now."""
    found = await bench.store.quote(offer.account, offer.id)
    assert found is not None
    return found


async def the_instance(bench: StoreBench, gpu_instance_id: str) -> GpuInstance:
    """As it stands now."""
    found = await bench.store.instance(gpu_instance_id)
    assert found is not None
    return found


async def told(bench: StoreBench, *names: str) -> list[Event]:
    """The events of these names that nobody was told of yet."""
    return [event for event in await bench.store.unplanned(10_000) if event.type in names]


def heard(*signatures: str, source: str = "helius", **how: Any) -> Incoming:
    """A call that tells of these."""
    return Incoming(source=source, raw=b'[{"signature":"\x00\xff"}]', signatures=signatures, **how)


def once(answers: Sequence[Posted]) -> Posted:
    """What all of them wrote together."""
    return Posted(*(sum(column) for column in zip(*answers, strict=True)))
