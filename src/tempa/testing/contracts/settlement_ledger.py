"""Contract of the ledger: what stands in it is whole, in order, and sums to zero."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from tempa.settlement.journal import GENESIS, UNALLOCATED, customer_account, first_broken, treasury_account
from tempa.settlement.model import Outflow, Verdict
from tempa.settlement.post import Proven
from tempa.testing.contracts.samples import ACCOUNT, OTHER_ACCOUNT
from tempa.testing.contracts.settlement_steps import (
    MINT,
    TERMS,
    TOKENS,
    a_quote,
    a_signature,
    an_instance,
    pay,
)

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench


class LedgerContract:
    """Pages and sums."""

    async def test_an_accounts_ledger_is_read_page_by_page(self, bench: StoreBench) -> None:
        gpu, other = await an_instance(bench), await an_instance(bench)
        paid = [await pay(bench, await a_quote(bench, gpu, 60), 120 + part) for part in range(3)]
        foreign = await pay(bench, await a_quote(bench, other, 60, account=OTHER_ACCOUNT), 120)

        first = await bench.store.ledger(ACCOUNT, 0, 2)
        rest = await bench.store.ledger(ACCOUNT, first[-1].number, 2)

        assert [(line.signature, line.allocation.amount) for line in first + rest] == [
            (receipt.signature, receipt.amount) for receipt in paid
        ]
        everybody = await bench.store.ledger(None, 0, 10)
        assert [line.signature for line in everybody] == [one.signature for one in (*paid, foreign)]
        assert everybody[0].allocation.gpu_instance_id == gpu
        assert everybody[0].slot == paid[0].slot

    async def test_receipts_are_read_in_the_order_posted(self, bench: StoreBench) -> None:
        paid = [await pay(bench, None, 100 + part) for part in range(3)]

        first = await bench.store.receipts(0, 2)
        rest = await bench.store.receipts(first[-1].number, 2)

        assert [one.receipt for one in first + rest] == paid

    async def test_memos_and_labels_come_back_as_they_were(self, bench: StoreBench) -> None:
        receipt = await pay(bench, None, 500, memos=('„sewa“ \x00 \ud800 "quoted"', ""), index=None)

        (recorded,) = await bench.store.receipts_of(receipt.signature)

        assert recorded.receipt == receipt

    async def test_balances_say_whose_the_money_is(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        await pay(bench, await a_quote(bench, gpu), 7_000)
        await pay(bench, None, 2**64 - 1)

        balances = await bench.store.balances()

        assert balances == {
            (treasury_account(MINT), MINT): 7_000 + 2**64 - 1,
            (customer_account(ACCOUNT), MINT): -7_000,
            (UNALLOCATED, MINT): -(2**64 - 1),
        }
        assert await bench.store.flows() == {(MINT, TOKENS.address): (7_000 + 2**64 - 1, 0)}

    async def test_flows_up_to_a_slot_leave_out_what_came_and_went_later(self, bench: StoreBench) -> None:
        receipt = await pay(bench, None, 500, slot=10)
        await pay(bench, None, 40, slot=11)
        for slot, amount in ((10, 7), (12, 5)):
            signature = a_signature()
            outflow = Outflow(
                cluster=receipt.cluster,
                signature=signature,
                asset=MINT,
                account=receipt.account,
                kind="transfer",
                amount=amount,
                slot=slot,
                index=0,
                block_time=None,
            )
            verdict = Verdict(signature=signature, slot=slot, outflows=(outflow,), reason="treasury_outflow")
            await bench.store.post_credits(Proven(verdict=verdict, terms=TERMS))

        place = (MINT, receipt.account)
        assert await bench.store.flows(9) == {}
        assert await bench.store.flows(10) == {place: (500, 7)}
        assert await bench.store.flows(11) == {place: (540, 7)}
        assert await bench.store.flows() == {place: (540, 12)}


class JournalContract:
    """One chain, whoever posts."""

    async def test_the_chain_holds_whoever_posts_at_once(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        quotes = [await a_quote(bench, gpu, 60) for _ in range(30)]
        receipts = await asyncio.gather(*(pay(bench, quote, 120) for quote in quotes))

        entries = await bench.store.journal(0, 1_000)

        assert len(entries) == 30
        assert first_broken(entries) is None
        assert [entry.number for entry in entries] == list(range(1, 31))
        entry = await bench.store.entry_of(receipts[7])
        assert entry in entries
        assert {part.draft.key.split(":")[2] for part in entries} == {one.signature for one in receipts}

    async def test_the_chain_is_read_in_pieces(self, bench: StoreBench) -> None:
        for _ in range(5):
            await pay(bench, None, 100)

        first = await bench.store.journal(0, 3)
        rest = await bench.store.journal(first[-1].number, 3)

        assert first[0].previous_hash == GENESIS
        assert first_broken(rest, first[-1].hash) is None
        assert first_broken(rest) == 4

    async def test_what_was_altered_is_found(self, bench: StoreBench) -> None:
        for _ in range(3):
            await pay(bench, None, 100)
        entries = await bench.store.journal(0, 10)
        draft = entries[1].draft
        doubled = tuple(line._replace(amount=2 * line.amount) for line in draft.postings)

        entries[1] = replace(entries[1], draft=replace(draft, postings=doubled))

        assert first_broken(entries) == 2
