"""A ledger built anew from a chain itself: swept, looked up on several nodes, judged and posted again."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.ids import new_id
from tempa.settlement.model import SOL, Treasury
from tempa.settlement.past import whole_past
from tempa.settlement.ports import Trouble
from tempa.settlement.post import Proven, Terms
from tempa.settlement.quorum import Agreed, Quorum, Rule
from tempa.settlement.quotes import NewQuote, PriceOffer, Quote, new_quote, reference_from
from tempa.settlement.rebuild import Order, Rebuild, ReplayClock
from tempa.settlement.rentals import NewInstance
from tempa.testing.clock import ManualClock
from tempa.testing.devchain import instructions as make
from tempa.testing.devchain.chain import DevChain
from tempa.testing.devchain.faults import Fault
from tests.integration.chains.conftest import Connect

TERMS = Terms(operator="operator")
PRICE = PriceOffer(SOL, 7_000, 3)
FINAL_SLOTS = 33


async def quoted(store: SqliteStore, clock: ManualClock, treasury: Treasury, number: int) -> NewQuote:
    instance = await store.add_instance(NewInstance(id=new_id("gpu"), name="H200", prices=(PRICE,)))
    offer = new_quote(
        quote_id=new_id("quo"),
        account="acme",
        gpu_instance_id=instance.id,
        seconds=60,
        price=PRICE.price,
        treasury=treasury.accounts[0],
        reference=reference_from(number.to_bytes(32, "little")),
        now=clock.now(),
        lock_seconds=10**9,
    )
    opened = await store.open_quote(offer)
    assert isinstance(opened, Quote)
    return offer


async def test_the_chain_gives_the_same_ledger_again(
    chain: DevChain, connect: Connect, treasury: Treasury, tmp_path: Path
) -> None:
    quorum = Quorum([connect(number) for number in range(3)], treasury, Rule())
    await quorum.look()
    clock = ManualClock()
    store = await SqliteStore.open(tmp_path / "tempa.db", clock=clock, wake=InProcessWake(clock))
    quotes = [await quoted(store, clock, treasury, number) for number in (1, 2)]
    payer, wallet = chain.payer, chain.treasury
    for number in range(12):
        pays = make.pay_sol(payer.key, wallet.key, 1_000_003 + number)
        memo = make.memo(f"tempa:{quotes[number % 2].id}", payer.key)
        payer.send(pays, *([memo] if number < 10 else []))
        chain.cluster.tick(number % 3)
    wallet.send(make.pay_sol(wallet.key, payer.key, 77))  # the operator takes some out
    chain.cluster.tick(FINAL_SLOTS)
    waited: list[str] = []

    async def wait(trouble: Trouble) -> None:
        waited.append(trouble.reason)
        await asyncio.sleep(0)

    addresses = [row.address for row in treasury.accounts]
    swept = [one.signature async for one in whole_past(quorum.nodes[1], addresses, wait)]
    assert len(swept) > 12  # what the treasury was opened with came by transactions too
    for signature in dict.fromkeys(swept):  # newest first: not in the chain's order
        found = await quorum.check(signature)
        assert isinstance(found, Agreed)
        await store.post_credits(Proven(verdict=found.verdict, terms=TERMS))
    chain.nodes[0].faults["getSignaturesForAddress"] = [Fault("http", status=502)]
    for order in Order:
        replay = ReplayClock()
        scratch = await SqliteStore.open(tmp_path / f"{order}.db", clock=replay, wake=InProcessWake(replay))
        done = await Rebuild(
            source=store,
            scratch=scratch,
            clock=replay,
            sightings=whole_past(quorum.nodes[0], addresses, wait),
            check=quorum.check,
            terms=TERMS,
            grace_seconds=600,
            order=order,
        ).run()

        assert done.is_identical, (done.comparison.differences, done.undone, done.unchecked)
        assert done.comparison.receipts >= 12
        again = await scratch.quote("acme", quotes[0].id)
        assert again is not None
        paid = sum(1_000_003 + number for number in range(0, 10, 2))
        assert (again.paid, again.granted_seconds) == (paid, paid * 3 // 7_000)
        await scratch.close()
    await store.close()
    assert waited == ["node_unavailable"]
