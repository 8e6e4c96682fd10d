"""What the rentals say of a job that wants an instance: it may, or what to pay, or why it cannot be had."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tempa.core.ids import new_id
from tempa.jobs.model import Tenant, Tenure
from tempa.settlement.model import Treasury
from tempa.settlement.quotes import PriceOffer
from tempa.settlement.quoting import Quoting
from tempa.testing.contracts.samples import ACCOUNT, OTHER_ACCOUNT
from tempa.testing.contracts.settlement_steps import (
    CLUSTER,
    HOUR,
    LAMPORTS,
    LOCK_SECONDS,
    TOKENS,
    a_quote,
    an_instance,
    known,
    pay,
)
from tempa.wiring.allowance import RentalAllowance

if TYPE_CHECKING:
    from tempa.settlement.model import TreasuryAccount
    from tempa.testing.contracts.bench import StoreBench

GRACE = 600.0
UNPRICED = PriceOffer("SOL", 5_000_000, 60)


def allowance_of(bench: StoreBench, *accounts: TreasuryAccount) -> RentalAllowance:
    treasury = Treasury(cluster=CLUSTER, accounts=accounts)
    quoting = Quoting(
        store=bench.store,
        treasury=known(treasury) if accounts else None,
        clock=bench.clock,
        lock_seconds=LOCK_SECONDS,
    )
    return RentalAllowance(store=bench.store, clock=bench.clock, quoting=quoting)


@pytest.fixture
def allowance(bench: StoreBench) -> RentalAllowance:
    return allowance_of(bench, TOKENS, LAMPORTS)


async def rented(bench: StoreBench, account: str = ACCOUNT) -> Tenant:
    """For an hour from now."""
    gpu = await an_instance(bench)
    await pay(bench, await a_quote(bench, gpu, account=account), 7_200)
    return Tenant(account, gpu)


async def quoted(allowance: RentalAllowance, tenant: Tenant) -> str:
    """The quote that a refusal brings."""
    refusal = await allowance.refusal(tenant)
    assert (refusal.slug, refusal.status) == ("rental-required", 402)
    return str(refusal.as_dict()["quote"]["quote_id"])


async def test_a_rental_counts_to_its_last_second_is_held_in_grace_and_then_over(
    bench: StoreBench, allowance: RentalAllowance
) -> None:
    tenant = await rented(bench)
    assert await allowance.tenure(tenant) is Tenure.ACTIVE

    bench.clock.advance(3_599.999)
    assert await allowance.tenure(tenant) is Tenure.ACTIVE
    bench.clock.advance(0.001)
    assert await allowance.tenure(tenant) is Tenure.HELD, "noticed or not"
    bench.clock.advance(GRACE)
    assert await allowance.tenure(tenant) is Tenure.HELD, "a payment would still prolong it"
    await bench.store.expire_rentals(0, GRACE, 10)
    assert await allowance.tenure(tenant) is Tenure.OVER


async def test_what_is_paid_in_the_grace_is_active_again(
    bench: StoreBench, allowance: RentalAllowance
) -> None:
    tenant = await rented(bench)
    bench.clock.advance(3_600 + GRACE / 2)
    await bench.store.expire_rentals(0, GRACE, 10)
    assert await allowance.tenure(tenant) is Tenure.HELD

    await pay(bench, await a_quote(bench, tenant.gpu_instance_id), 7_200)

    assert await allowance.tenure(tenant) is Tenure.ACTIVE


async def test_only_whose_the_rental_is_may_use_it(bench: StoreBench, allowance: RentalAllowance) -> None:
    tenant = await rented(bench)

    assert await allowance.tenure(tenant._replace(account=OTHER_ACCOUNT)) is Tenure.OVER
    assert await allowance.tenure(Tenant(ACCOUNT, await an_instance(bench))) is Tenure.OVER
    assert await allowance.tenure(Tenant(ACCOUNT, new_id("gpu"))) is Tenure.OVER


async def test_a_suspended_instance_takes_no_jobs_and_ends_none(
    bench: StoreBench, allowance: RentalAllowance
) -> None:
    tenant = await rented(bench)
    await bench.store.suspend_instance(tenant.gpu_instance_id)

    assert await allowance.tenure(tenant) is Tenure.HELD
    refusal = await allowance.refusal(tenant)

    assert (refusal.slug, refusal.status) == ("instance-suspended", 409)
    await bench.store.resume_instance(tenant.gpu_instance_id)
    assert await allowance.tenure(tenant) is Tenure.ACTIVE


async def test_a_refusal_brings_a_quote_that_lets_the_job_in_once_it_is_paid(
    bench: StoreBench, allowance: RentalAllowance
) -> None:
    tenant = Tenant(ACCOUNT, await an_instance(bench, HOUR, UNPRICED))

    body = (await allowance.refusal(tenant)).as_dict()

    assert (body["status"], body["code"]) == (402, "RENTAL_REQUIRED")
    shown = body["quote"]
    assert (shown["asset"], shown["amount"], shown["seconds"]) == (HOUR.asset, str(HOUR.amount), HOUR.seconds)
    assert shown["gpu_instance_id"] == tenant.gpu_instance_id
    assert body["solana_pay_url"] == shown["solana_pay_url"]
    assert body["solana_pay_url"].startswith(f"solana:{TOKENS.owner}?")
    assert shown["reference"] in body["solana_pay_url"]
    quote = await bench.store.quote(ACCOUNT, shown["quote_id"])
    assert quote is not None
    await pay(bench, quote.offer, quote.offer.amount)
    assert await allowance.tenure(tenant) is Tenure.ACTIVE


async def test_asking_again_makes_no_more_quotes(bench: StoreBench, allowance: RentalAllowance) -> None:
    tenant = Tenant(ACCOUNT, await an_instance(bench))

    told = await asyncio.gather(*(quoted(allowance, tenant) for _ in range(20)))
    bench.clock.advance(LOCK_SECONDS / 2)
    told.append(await quoted(allowance, tenant))

    assert len(set(told)) == 1
    assert len(await bench.store.quotes(ACCOUNT, 100, None)) == 1


async def test_another_quote_is_made_when_the_first_cannot_be_paid_in_time_any_more(
    bench: StoreBench, allowance: RentalAllowance
) -> None:
    tenant = Tenant(ACCOUNT, await an_instance(bench))
    first = await quoted(allowance, tenant)

    bench.clock.advance(LOCK_SECONDS - 10)

    assert await quoted(allowance, tenant) != first


async def test_another_quote_is_made_for_other_terms(bench: StoreBench, allowance: RentalAllowance) -> None:
    gpu = await an_instance(bench)
    tenant, elsewhere = Tenant(ACCOUNT, gpu), Tenant(ACCOUNT, await an_instance(bench))
    await a_quote(bench, gpu, 60)
    first = await quoted(allowance, tenant)

    others = [await quoted(allowance, elsewhere), await quoted(allowance, Tenant(OTHER_ACCOUNT, gpu))]
    await bench.store.change_prices(gpu, (PriceOffer(HOUR.asset, HOUR.amount + 1, HOUR.seconds),))
    others.append(await quoted(allowance, tenant))

    assert len({first, *others}) == 4


async def test_a_quote_that_is_being_paid_is_not_handed_out_again(
    bench: StoreBench, allowance: RentalAllowance
) -> None:
    tenant = Tenant(ACCOUNT, await an_instance(bench))
    first = await quoted(allowance, tenant)
    quote = await bench.store.quote(ACCOUNT, first)
    assert quote is not None
    await pay(bench, quote.offer, quote.offer.amount // 2)  # partial: half an hour
    bench.clock.advance(3_600)

    assert await quoted(allowance, tenant) != first


async def test_a_price_that_cannot_be_paid_at_present_is_passed_over(bench: StoreBench) -> None:
    tenant = Tenant(ACCOUNT, await an_instance(bench, HOUR, UNPRICED))

    body = (await allowance_of(bench, LAMPORTS).refusal(tenant)).as_dict()

    assert body["quote"]["asset"] == "SOL"


async def test_an_instance_that_somebody_else_rents_cannot_be_had(
    bench: StoreBench, allowance: RentalAllowance
) -> None:
    tenant = await rented(bench, OTHER_ACCOUNT)

    refusal = await allowance.refusal(tenant._replace(account=ACCOUNT))

    assert (refusal.slug, refusal.status) == ("instance-rented", 409)
    assert OTHER_ACCOUNT not in str(refusal.as_dict())
    assert await bench.store.quotes(ACCOUNT, 10, None) == []


async def test_an_unknown_instance_is_a_mistake_in_the_request(allowance: RentalAllowance) -> None:
    refusal = await allowance.refusal(Tenant(ACCOUNT, new_id("gpu")))

    assert (refusal.slug, refusal.status) == ("invalid-request", 422)
    assert [problem.pointer for problem in refusal.errors] == ["/gpu_instance_id"]


@pytest.mark.parametrize(
    ("accounts", "words"), [((), "takes no payments"), ((LAMPORTS,), "cannot be paid for at present")]
)
async def test_without_a_way_to_pay_it_is_said_in_words(
    bench: StoreBench, accounts: tuple[TreasuryAccount, ...], words: str
) -> None:
    tenant = Tenant(ACCOUNT, await an_instance(bench))

    refusal = await allowance_of(bench, *accounts).refusal(tenant)

    assert (refusal.slug, refusal.status) == ("rental-required", 402)
    assert "quote" not in refusal.extra
    assert words in refusal.detail
