"""Contract of the inbox: on disk before it is told so, once a source, looked up until it is settled."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING

from tempa.core.work import INBOX
from tempa.settlement.inbox import Cursor, InboxEnding, InboxState, TakenIn, Unread
from tempa.settlement.ingress import Rejected
from tempa.testing.contracts.samples import LEASE_SECONDS
from tempa.testing.contracts.settlement_steps import (
    a_quote,
    a_receipt,
    a_signature,
    an_address,
    an_instance,
    heard,
    proven,
)

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench


def pending(signature: str, delay_seconds: float, **how: object) -> InboxEnding:
    """It cannot be seen yet."""
    given = {"reason": "not_found_yet", "is_shown": False, **how}
    return InboxEnding(signature=signature, state=InboxState.PENDING, delay_seconds=delay_seconds, **given)  # type: ignore[arg-type]


class InboxContract:
    """Taking in, claiming and settling."""

    async def test_a_signature_is_taken_in_once_a_source(self, bench: StoreBench) -> None:
        first, second, third = a_signature(), a_signature(), a_signature()

        async with bench.expect_ring(INBOX):
            assert await bench.store.take_in(heard(first, second)) == TakenIn(2, 0)
        async with bench.expect_silence(INBOX):
            assert await bench.store.take_in(heard(second, first)) == TakenIn(0, 2)
        assert await bench.store.take_in(heard(second, third)) == TakenIn(1, 1)
        assert await bench.store.take_in(heard(first, source="websocket")) == TakenIn(1, 0)

        told = await bench.store.inbox_of(first)
        assert [(entry.source, entry.state) for entry in told] == [
            ("helius", InboxState.PENDING),
            ("websocket", InboxState.PENDING),
        ]

    async def test_of_many_calls_at_once_one_is_first(self, bench: StoreBench) -> None:
        signatures = [a_signature() for _ in range(5)]

        answers = await asyncio.gather(*(bench.store.take_in(heard(*signatures)) for _ in range(64)))

        assert sum(answer.accepted for answer in answers) == 5
        assert sum(answer.duplicates for answer in answers) == 63 * 5

    async def test_a_signature_twice_in_one_call_counts_once(self, bench: StoreBench) -> None:
        signature = a_signature()

        assert await bench.store.take_in(heard(signature, signature)) == TakenIn(1, 1)

    async def test_what_comes_with_a_nonce_that_was_used_is_kept_and_told_apart(
        self, bench: StoreBench
    ) -> None:
        first, second = a_signature(), a_signature()

        assert await bench.store.take_in(heard(first, nonce="n-1")) == TakenIn(1, 0)
        replay = heard(first, second, nonce="n-1")
        assert await bench.store.take_in(replay) == TakenIn(1, 1, is_replay=True)
        assert await bench.store.take_in(replay) == TakenIn(0, 2, is_replay=True)
        assert await bench.store.take_in(heard(second, nonce="n-1", source="quicknode")) == TakenIn(1, 0)

        sources = [entry.source for entry in await bench.store.inbox_of(second)]
        assert sources == ["helius", "quicknode"]

    async def test_of_a_nonce_used_at_once_one_call_is_heard(self, bench: StoreBench) -> None:
        calls = [heard(a_signature(), nonce="n-2") for _ in range(8)]

        answers = await asyncio.gather(*(bench.store.take_in(call) for call in calls))

        assert sorted(answer.is_replay for answer in answers) == [False] + [True] * 7

    async def test_nonces_are_forgotten_behind_their_window(self, bench: StoreBench) -> None:
        await bench.store.take_in(heard(nonce="old"))
        bench.clock.advance(600)
        await bench.store.take_in(heard(nonce="new"))
        edge = bench.clock.now() - timedelta(seconds=300)

        assert await bench.store.forget_nonces(edge, 10) == 1

        assert not (await bench.store.take_in(heard(nonce="old"))).is_replay
        assert (await bench.store.take_in(heard(nonce="new"))).is_replay

    async def test_a_broken_entry_is_shown_with_what_came_and_harms_no_neighbour(
        self, bench: StoreBench
    ) -> None:
        signature = a_signature()
        call = heard(signature, rejected=(Rejected("/1", "no signature \x00 in \ud800it"),))

        assert await bench.store.take_in(call) == TakenIn(1, 0)

        (anomaly,) = await bench.store.anomalies(10, None)
        assert (anomaly.reason, anomaly.source, anomaly.raw) == ("entry_unreadable", "helius", call.raw)
        assert "/1" in anomaly.detail
        assert [claim.signature for claim in await bench.store.claim_inbox(10, LEASE_SECONDS)] == [signature]

    async def test_a_claim_leases_what_has_waited_longest(self, bench: StoreBench) -> None:
        signatures = [a_signature() for _ in range(3)]
        for signature in signatures:
            await bench.store.take_in(heard(signature))
            bench.clock.advance(1)
        await bench.store.take_in(heard(signatures[0], source="sweep"))

        first = await bench.store.claim_inbox(2, LEASE_SECONDS)
        second = await bench.store.claim_inbox(2, LEASE_SECONDS)

        assert [claim.signature for claim in first] == signatures[:2]
        assert [claim.signature for claim in second] == signatures[2:]
        assert await bench.store.claim_inbox(2, LEASE_SECONDS) == []
        bench.let_lapse()
        again = await bench.store.claim_inbox(10, LEASE_SECONDS)
        assert {claim.signature for claim in again} == set(signatures)

    async def test_two_claims_at_once_share_the_work(self, bench: StoreBench) -> None:
        signatures = {a_signature() for _ in range(40)}
        await bench.store.take_in(heard(*signatures))

        claims = await asyncio.gather(*(bench.store.claim_inbox(10, LEASE_SECONDS) for _ in range(4)))
        claims.append(await bench.store.claim_inbox(40, LEASE_SECONDS))  # passed over by all of them

        taken = [claim.signature for claim in chain.from_iterable(claims)]
        assert sorted(taken) == sorted(signatures)

    async def test_lookups_of_a_dead_instance_are_due_at_once(self, bench: StoreBench) -> None:
        signature, waiting = a_signature(), a_signature()
        await bench.store.take_in(heard(signature, waiting))
        await bench.store.claim_inbox(2, LEASE_SECONDS)
        await bench.store.settle_inbox([pending(waiting, 20.0)])

        assert await bench.store.free_inbox() == 1

        assert [claim.signature for claim in await bench.store.claim_inbox(2, LEASE_SECONDS)] == [signature]

    async def test_what_is_pending_comes_again_and_counts_what_was_spoiled(self, bench: StoreBench) -> None:
        signature = a_signature()
        await bench.store.take_in(heard(signature))
        received_at = bench.clock.now()
        assert await bench.store.next_lookup() == received_at
        assert await bench.store.pending_lookups() == (1, received_at)
        await bench.store.claim_inbox(1, LEASE_SECONDS)

        await bench.store.settle_inbox([pending(signature, 4.0, reason="node_timeout", spends_attempt=True)])

        assert await bench.store.next_lookup() == received_at + timedelta(seconds=4)
        assert await bench.store.claim_inbox(1, LEASE_SECONDS) == []
        bench.clock.advance(4)
        (claim,) = await bench.store.claim_inbox(1, LEASE_SECONDS)
        assert (claim.signature, claim.attempts, claim.received_at) == (signature, 1, received_at)
        assert await bench.store.anomalies(10, None) == []

    async def test_what_is_final_is_shown_and_not_looked_up_again(self, bench: StoreBench) -> None:
        signature = a_signature()
        await bench.store.take_in(heard(signature))
        await bench.store.take_in(heard(signature, source="sweep"))
        ending = InboxEnding(
            signature=signature, state=InboxState.TERMINAL, reason="transaction_failed", detail="Custom 1"
        )

        await bench.store.settle_inbox([ending])

        assert await bench.store.next_lookup() is None
        assert await bench.store.pending_lookups() == (0, None)
        told = await bench.store.inbox_of(signature)
        assert [(entry.state, entry.reason) for entry in told] == [
            (InboxState.TERMINAL, "transaction_failed")
        ] * 2
        (anomaly,) = await bench.store.anomalies_of(signature)
        assert (anomaly.reason, anomaly.detail, anomaly.count) == ("transaction_failed", "Custom 1", 1)

    async def test_what_could_not_be_seen_is_cleared_when_it_lands(self, bench: StoreBench) -> None:
        quote = await a_quote(bench, await an_instance(bench))
        receipt = a_receipt(bench, quote, 7_200)
        await bench.store.take_in(heard(receipt.signature))
        for _ in range(2):
            await bench.store.settle_inbox([pending(receipt.signature, 0.0, is_shown=True)])
        (noted,) = await bench.store.anomalies(10, None)
        assert (noted.reason, noted.count) == ("not_found_yet", 2)

        await bench.store.post_credits(proven(receipt))

        assert await bench.store.anomalies(10, None) == []
        (cleared,) = await bench.store.anomalies_of(receipt.signature)
        assert cleared.resolution == "credited"
        (entry,) = await bench.store.inbox_of(receipt.signature)
        assert entry.state is InboxState.CREDITED

    async def test_a_late_failure_does_not_undo_a_credit(self, bench: StoreBench) -> None:
        quote = await a_quote(bench, await an_instance(bench))
        receipt = a_receipt(bench, quote, 7_200)
        await bench.store.take_in(heard(receipt.signature))
        await bench.store.post_credits(proven(receipt))

        await bench.store.settle_inbox([pending(receipt.signature, 1.0, is_shown=True)])

        assert (await bench.store.inbox_of(receipt.signature))[0].state is InboxState.CREDITED
        assert await bench.store.next_lookup() is None
        assert await bench.store.anomalies_of(receipt.signature) == []

    async def test_what_another_source_led_to_a_credit_is_not_looked_up(self, bench: StoreBench) -> None:
        quote = await a_quote(bench, await an_instance(bench))
        receipt = a_receipt(bench, quote, 7_200)
        await bench.store.take_in(heard(receipt.signature))
        await bench.store.post_credits(proven(receipt))

        assert await bench.store.take_in(heard(receipt.signature, source="sweep")) == TakenIn(1, 0)

        assert await bench.store.next_lookup() is None

    async def test_what_is_urgent_passes_what_waits(self, bench: StoreBench) -> None:
        flood = [a_signature() for _ in range(3)]
        for signature in flood:
            await bench.store.take_in(heard(signature, source="sweep"))
        bench.clock.advance(1)
        await bench.store.take_in(heard(flood[2], source="reference", is_urgent=True))

        (claim,) = await bench.store.claim_inbox(1, LEASE_SECONDS)

        assert claim.signature == flood[2]
        rest = await bench.store.claim_inbox(10, LEASE_SECONDS)
        assert {claim.signature for claim in rest} == set(flood[:2])

    async def test_only_what_was_not_found_is_recalled_when_a_node_shows_it(self, bench: StoreBench) -> None:
        missed, held, due, leased = signatures = [a_signature() for _ in range(4)]
        await bench.store.take_in(heard(*signatures))
        await bench.store.settle_inbox(
            [
                pending(missed, 600.0),
                pending(held, 600.0, reason="nodes_disagree"),
                pending(due, 0.0),
                pending(leased, 0.0),
            ]
        )
        await bench.store.take_in(heard(missed, source="websocket"))
        await bench.store.settle_inbox([pending(missed, 900.0)])
        bench.clock.advance(1)
        assert {claim.signature for claim in await bench.store.claim_inbox(2, LEASE_SECONDS)} == {due, leased}
        await bench.store.settle_inbox([pending(due, 0.0)])

        assert missed in await bench.store.missed_lookups(10)
        assert held not in await bench.store.missed_lookups(10)
        async with bench.expect_ring(INBOX):
            assert await bench.store.recall_lookups([missed, held, leased, a_signature()]) == 2
        async with bench.expect_silence(INBOX):
            assert await bench.store.recall_lookups([missed]) == 0

        claimed = await bench.store.claim_inbox(10, LEASE_SECONDS)
        assert {claim.signature for claim in claimed} == {missed, due}

    async def test_it_is_known_whether_a_sources_words_of_a_time_still_wait(self, bench: StoreBench) -> None:
        signature, second = a_signature(), timedelta(seconds=1)
        at = bench.clock.now()
        await bench.store.take_in(heard(signature, source="sweep"))
        bench.clock.advance(60)

        assert await bench.store.is_looking_up("sweep", at - second, at + second)
        assert not await bench.store.is_looking_up("sweep", at + 30 * second, at + 60 * second)
        assert not await bench.store.is_looking_up("sweep", at - 30 * second, at - 10 * second)
        assert not await bench.store.is_looking_up("helius", at - second, at + second)
        ending = InboxEnding(
            signature=signature, state=InboxState.TERMINAL, reason="nothing_received", is_shown=False
        )
        await bench.store.settle_inbox([ending])
        assert not await bench.store.is_looking_up("sweep", at - second, at + second)

    async def test_what_is_unread_below_a_cursor_only_shrinks(self, bench: StoreBench) -> None:
        address, newest = an_address(), a_signature()

        def unread(slot: int) -> Cursor:
            return Cursor(900, newest, Unread(before=a_signature(), slot=slot, floor=10, known=None))

        steps = [unread(500), unread(500), unread(400)]
        for step in steps:
            await bench.store.advance_cursor(address, step)
            assert await bench.store.cursor(address) == step
        await bench.store.advance_cursor(address, unread(401))
        assert await bench.store.cursor(address) == steps[-1]

        done = Cursor(900, newest)
        await bench.store.advance_cursor(address, done)
        await bench.store.advance_cursor(address, unread(300))
        assert await bench.store.cursor(address) == done
        further = Cursor(901, newest, Unread(before=newest, slot=900, floor=388, known=newest))
        await bench.store.advance_cursor(address, further)
        assert await bench.store.cursor(address) == further

    async def test_a_cursor_never_goes_back(self, bench: StoreBench) -> None:
        address = an_address()
        assert await bench.store.cursor(address) is None
        far, near = Cursor(900, a_signature()), Cursor(899, a_signature())

        for cursor in (near, far, near):
            await bench.store.advance_cursor(address, cursor)

        assert await bench.store.cursor(address) == far
