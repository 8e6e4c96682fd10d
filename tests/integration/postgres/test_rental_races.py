"""Two processes prolong one rental: by one relative statement, so that no second is ever lost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.flow import ASK, Done
from tempa.adapters.stores.commands.ledger import post_all
from tempa.core.clock import to_ms
from tempa.settlement.journal import first_broken
from tempa.settlement.post import Posted
from tempa.testing.contracts.settlement_steps import (
    a_quote,
    a_receipt,
    an_instance,
    once,
    proven,
    the_instance,
)
from tests.integration.postgres.sessions import PATIENCE_SECONDS, unfinished

if TYPE_CHECKING:
    from tempa.adapters.stores.commands.flow import Flow
    from tempa.testing.contracts.bench import StoreBench
    from tests.integration.postgres.sessions import Session

ROUNDS = 60


def prolong(gpu: str, account: str, now: int) -> Flow[Done[bool]]:
    """What posting says to the rental, without the ledger's lock around it."""
    row = yield ASK.extend_rental(
        gpu_instance_id=gpu,
        account=account,
        seconds=7,
        quote_id="quo_1",
        signature="S",
        latest=2**62,
        now=now,
    )
    return Done(row is not None)


async def test_without_any_lock_no_second_is_lost(benches: tuple[StoreBench, StoreBench]) -> None:
    gpu = await an_instance(benches[0])
    now = to_ms(benches[0].clock.now())
    stores: list[Any] = [bench.store for bench in benches]

    taken = await asyncio.gather(
        *(stores[turn % 2]._write(prolong, gpu, "acme", now) for turn in range(ROUNDS))
    )

    rental = (await the_instance(benches[0], gpu)).rental
    assert rental is not None
    assert taken == [True] * ROUNDS
    assert (rental.seconds, to_ms(rental.expires_at)) == (7 * ROUNDS, now + 7_000 * ROUNDS)


async def test_without_any_lock_one_of_two_renters_has_it(benches: tuple[StoreBench, StoreBench]) -> None:
    stores: list[Any] = [bench.store for bench in benches]
    for _ in range(20):
        gpu = await an_instance(benches[0])
        now = to_ms(benches[0].clock.now())

        taken = await asyncio.gather(
            *(stores[turn % 2]._write(prolong, gpu, ("acme", "globex")[turn % 2], now) for turn in range(6))
        )

        rental = (await the_instance(benches[0], gpu)).rental
        assert rental is not None
        assert sum(taken) == 3
        assert rental.seconds == 21


async def test_an_entry_waits_for_the_one_it_hangs_on(
    benches: tuple[StoreBench, StoreBench], session: Session
) -> None:
    """Of two processes that post other receipts at once, the second sees the end that the first has made."""
    quotes = [await a_quote(benches[0], await an_instance(benches[0]), 60) for _ in range(2)]
    first, second = [a_receipt(benches[0], quote, 120) for quote in quotes]
    here: Any = benches[0].store

    async with unfinished(here, post_all([proven(first)])):
        waiting = asyncio.ensure_future(benches[1].store.post_credits(proven(second)))
        await session.until_blocked(1)
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await waiting == Posted(receipts=1, credits=1)

    entries = await benches[0].store.journal(0, 10)
    assert [entry.draft.detail["signature"] for entry in entries] == [first.signature, second.signature]
    assert first_broken(entries) is None


async def test_two_processes_that_post_the_same_receipts_credit_each_once(
    benches: tuple[StoreBench, StoreBench],
) -> None:
    gpu = await an_instance(benches[0])
    quotes = [await a_quote(benches[0], gpu, 60) for _ in range(30)]
    receipts = [a_receipt(benches[0], quote, 120) for quote in quotes]

    answers = await asyncio.gather(
        *(bench.store.post_credits(proven(receipt)) for receipt in receipts for bench in benches)
    )

    rental = (await the_instance(benches[0], gpu)).rental
    assert rental is not None
    assert once(answers) == Posted(receipts=30, credits=30)
    assert rental.seconds == 30 * 60
    assert first_broken(await benches[1].store.journal(0, 100)) is None
