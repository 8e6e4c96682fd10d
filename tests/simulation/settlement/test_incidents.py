"""What has gone wrong elsewhere with payments on Solana, as tests. The whole list: incidents.md."""

from __future__ import annotations

import asyncio
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import VersionedTransaction

from tempa.settlement.model import QuoteStatus
from tempa.settlement.ports import Chain
from tempa.testing.devchain import instructions as make
from tempa.testing.devchain.admission import message_bytes
from tests.simulation.settlement.chain import Weather
from tests.simulation.settlement.ground import FINAL_SLOTS
from tests.simulation.settlement.server import LEASE_SECONDS, Died
from tests.simulation.settlement.stall import PRICE, Stall, open_stall

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from solders.instruction import Instruction

ROOM = Path(__file__).parent
ROOT = ROOM.parents[2]
INCIDENTS = 25
SETTLERS = 8


@pytest.fixture
async def stall() -> AsyncIterator[Stall]:
    async with open_stall() as made:
        yield made


async def test_a_payment_in_the_newest_transaction_format_is_credited(stall: Stall) -> None:
    """1: a reader that allows versions up to 0 is refused every payment of version 1."""
    usd = stall.quotes["usd"]
    signature = stall.send(stall.transfer(usd), version=1)
    await stall.hear(signature)
    await stall.settle()
    assert await stall.paid(usd) == usd.amount


async def test_a_node_that_shows_no_new_versions_is_an_alarm_and_no_loss(stall: Stall) -> None:
    """2: the call left out which versions it knows; the refusal was taken for "no payment"."""
    usd = stall.quotes["usd"]
    signature = stall.send(stall.transfer(usd), version=0)
    await stall.hear(signature)
    for node in stall.nodes:
        node.weather = Weather.OLD
    await stall.settle()
    assert await stall.reasons(signature) == ["version_unsupported"]
    for node in stall.nodes:
        node.weather = Weather.FAIR
    stall.clock.advance(3_600)
    await stall.settle()
    assert await stall.paid(usd) == usd.amount
    assert await stall.reasons(signature) == []


async def test_two_signatures_over_one_message_are_one_payment(stall: Stall) -> None:
    """7: the payer signs the same message anew and claims both; who dedupes by signature credits both."""
    usd = stall.quotes["usd"]
    raw = stall.payer.signed(stall.transfer(usd))
    other = resigned(raw, bytes(stall.payer.pair)[:32])
    signatures = [stall.chain.submit(one, skip_preflight=True) for one in (raw, other)]
    assert len(set(signatures)) == 2
    stall.pass_slots(FINAL_SLOTS)
    await stall.hear(*signatures)
    await stall.settle()
    assert await stall.paid(usd) == usd.amount
    assert [stall.chain.find(one) is not None for one in signatures] == [True, False]


async def test_a_token_that_keeps_a_fee_is_credited_net(stall: Stall) -> None:
    """8: what was sent is not what came, where the mint keeps a part of it."""
    fee = stall.quotes["fee"]
    await stall.hear(stall.send(stall.transfer(fee, 1_000_000)))
    await stall.settle()
    assert await stall.paid(fee) == 990_000


async def test_of_many_settlers_at_once_one_credits(stall: Stall) -> None:
    """9: settling the same payment N times at once bought N things."""
    usd = stall.quotes["usd"]
    await stall.hear(stall.send(stall.transfer(usd)))
    servers = [stall.process() for _ in range(SETTLERS)]
    for server in servers:
        await server.look()
    for server in servers:  # each believes that it is the only one: the leases before it have run out
        (claim,) = await server.fragile.claim_inbox(10, 0.0)
        server.settler._start(claim)
    await asyncio.gather(*(task for server in servers for task in server.settler._running))
    assert await stall.paid(usd) == usd.amount
    assert len(await stall.store.receipts(0, 100)) == 1


@pytest.mark.parametrize("number", range(20))
async def test_what_takes_more_out_than_it_brings_buys_nothing(stall: Stall, number: int) -> None:
    """10: instructions beside the payment drain who signs for its fee. Here what counts is the sum."""
    usd, treasury = stall.quotes["usd"], stall.ground.treasury
    poison = poisoned(stall, number)
    signature = stall.send(stall.transfer(usd), *poison, fee_payer=treasury.pair, signers=[treasury.pair])
    assert stall.chain.find(signature) is not None
    await stall.hear(signature)
    await stall.settle()
    account = stall.ground.treasury_account(usd.asset)
    held = stall.chain.account(account, stall.chain.tip.slot)
    assert held is not None
    gain = int.from_bytes(held.data[64:72], "little")
    assert await stall.paid(usd) == gain < usd.amount


def poisoned(stall: Stall, number: int) -> list[Instruction]:
    """The treasury, that signs too, sends back part of it or all of it, by either transfer."""
    ground, usd = stall.ground, stall.ground.usd
    source, target = (ground.account_of(one, usd) for one in (ground.treasury, ground.stranger))
    back = stall.quotes["usd"].amount * (number % 5 + 1) // 5
    plain = make.pay(source, target, ground.treasury.key, back)
    checked = make.pay_checked(source, usd, target, ground.treasury.key, back, 6)
    halves = [make.pay(source, target, ground.treasury.key, part) for part in (back // 2, back - back // 2)]
    lamports = make.pay_sol(ground.treasury.key, ground.stranger.key, 10_000)
    return [[plain], [checked], halves, [lamports, plain]][number // 5]


async def test_what_has_failed_is_not_settled_though_it_is_final(stall: Stall) -> None:
    """11: a confirmation status was read before the error, and a failed transaction was paid for."""
    usd = stall.quotes["usd"]
    signature = stall.send(stall.transfer(usd), stall.transfer(usd, 2**62))
    landed = stall.chain.find(signature)
    assert landed is not None
    assert landed.execution.err is not None
    await stall.hear(signature)
    await stall.settle()
    assert await stall.paid(usd) == 0
    assert await stall.store.receipts_of(signature) == []


def test_nothing_is_ever_sent_to_a_chain_to_settle_a_payment() -> None:
    """12: a payment was broadcast before anybody looked at what it paid. What settles cannot broadcast."""
    assert not [name for name in vars(Chain) if "send" in name or "submit" in name]


@pytest.mark.parametrize("after", [False, True], ids=["before", "behind"])
@pytest.mark.parametrize("command", ["take_in", "claim_inbox", "post_credits"])
async def test_who_has_paid_is_credited_though_the_server_dies(
    stall: Stall, command: str, *, after: bool
) -> None:
    """13: a mark that a payment was used was on disk, what it bought was not: it could be had no more."""
    usd = stall.quotes["usd"]
    signature = stall.send(stall.transfer(usd))
    stall.server.fragile.die_at(command, after=after, passage=1)
    for step in (stall.hear(signature), stall.settle()):
        try:
            await step
        except Died:
            continue
    assert stall.server.fragile.dead == (command, after)
    stall.server = stall.process()
    stall.clock.advance(LEASE_SECONDS + 1)
    await stall.hear(signature)  # the provider was not answered, and tells again
    await stall.settle()
    assert await stall.paid(usd) == usd.amount


@pytest.mark.parametrize("places", [[0], [1], [0, 1], [0, 0]], ids=["first", "last", "around", "twice"])
async def test_a_memo_may_stand_anywhere(stall: Stall, places: list[int]) -> None:
    """14: a checker counted instructions, and a memo in the first place broke it."""
    usd = stall.quotes["usd"]
    steps = [stall.transfer(usd)]
    for number, place in enumerate(places):
        steps.insert(place * len(steps), make.memo(f"note {number}"))
    await stall.hear(stall.send(*steps))
    await stall.settle()
    assert await stall.paid(usd) == usd.amount


async def test_lamports_are_counted_and_money_without_a_name_is_kept(stall: Stall) -> None:
    """15: SOL was taken for lamports; and who did not name his order had paid for nothing."""
    sol = stall.quotes["sol"]
    named = stall.send(stall.transfer(sol))
    unnamed = stall.send(stall.transfer(sol, 5_000, named=False))
    await stall.hear(named, unnamed)
    await stall.settle()
    assert await stall.paid(sol) == sol.amount == 3_600 * PRICE
    assert await stall.reasons(unnamed) == ["no_reference"]
    (recorded,) = await stall.store.receipts_of(unnamed)
    assert (recorded.receipt.amount, recorded.allocations) == (5_000, ())


async def test_a_history_in_any_order_within_a_slot_is_read_whole() -> None:
    """17: nodes order what lies in one slot each in its own way, and know no bound of another's."""
    async with open_stall(nodes=3) as stall:
        usd = stall.quotes["usd"]
        amounts = [2_000 + number for number in range(30)]
        for amount in amounts:
            stall.send(stall.transfer(usd, amount), final=False)
        stall.pass_slots(FINAL_SLOTS)
        orders = [await node.signatures_for_address(str(stall.payer.key)) for node in stall.nodes]
        assert orders[0] != orders[1] != orders[2]
        await stall.sweep()
        await stall.settle()
        assert await stall.paid(usd) == sum(amounts)


async def test_what_was_final_before_anybody_listened_is_credited(stall: Stall) -> None:
    """19: a payment that is confirmed before the subscription stands is never notified."""
    usd = stall.quotes["usd"]
    stall.send(stall.transfer(usd))
    stall.server = stall.process()  # the first that ever looks
    await stall.sweep()
    await stall.settle()
    assert await stall.paid(usd) == usd.amount


async def test_null_for_what_has_landed_is_asked_again(stall: Stall) -> None:
    """20: nodes answer null for a transaction that they show a moment later; it was given up."""
    usd = stall.quotes["usd"]
    signature = stall.send(stall.transfer(usd))
    await stall.hear(signature)
    for node in stall.nodes:
        node.weather = Weather.BLANK
    for _ in range(6):
        await stall.settle()
        stall.clock.advance(3_600)
    assert await stall.reasons(signature) == ["not_found_yet"]
    stall.nodes[1].weather = Weather.FAIR
    await stall.settle()
    assert await stall.paid(usd) == 0  # one of two is no quorum
    stall.nodes[0].weather = Weather.FAIR
    stall.clock.advance(3_600)
    await stall.settle()
    assert await stall.paid(usd) == usd.amount
    assert await stall.reasons(signature) == []


async def test_landed_is_not_paid_and_the_payer_is_told(stall: Stall) -> None:
    """21: "it landed" was shown as success."""
    usd = stall.quotes["usd"]
    signature = stall.send(stall.transfer(usd, 2**62))
    await stall.hear(signature)
    await stall.settle()
    assert await stall.reasons(signature) == ["transaction_failed"]
    (entry,) = await stall.store.inbox_of(signature)
    assert entry.state == "terminal"
    shown = await stall.store.quote(usd.account, usd.id)
    assert shown.status is QuoteStatus.OPEN


async def test_no_count_of_seconds_ends_the_wait_for_a_payment(stall: Stall) -> None:
    """23: a blockhash was thought to live for 60 to 90 s; with quick slots 150 blocks are half of that."""
    usd, chain = stall.quotes["usd"], stall.chain
    chain.slot_ms, chain.holding = 200, True
    signature = stall.send(stall.transfer(usd), final=False)
    chain.holding = False
    await stall.hear(signature)
    for _ in range(5):  # 100 of the 150 blocks that its blockhash lives for, and a clock that is far ahead
        stall.pass_slots(20)
        stall.clock.advance(600)
        await stall.settle()
    (entry,) = await stall.store.inbox_of(signature)
    assert (entry.state, entry.reason) == ("pending", "not_found_yet")
    assert chain.land(signature)
    stall.pass_slots(FINAL_SLOTS)
    stall.clock.advance(3_600)
    await stall.settle()
    assert await stall.paid(usd) == usd.amount


async def test_keys_in_any_place_and_inner_instructions_are_no_matter(stall: Stall) -> None:
    """24: an account was looked for at a fixed index, and what programs do inside was not looked at."""
    ground, usd = stall.ground, stall.quotes["usd"]
    table = stall.send(stall.transfer(usd, 40_000), version=0, tables=[ground.table])
    nested = ground.account_of(ground.treasury, ground.spoof)
    ground.issuer.give(ground.usd, nested, 8_000)
    moved = make.recover_nested(ground.treasury.key, ground.spoof, ground.usd)
    reference = Pubkey.from_string(usd.reference)
    inner = stall.send(
        make.labelled(moved, reference), make.memo(f"tempa:{usd.id}"), signers=[ground.treasury.pair]
    )
    await stall.hear(table, inner)
    await stall.settle()
    (by_table,), by_program = await stall.store.receipts_of(table), await stall.store.receipts_of(inner)
    assert by_table.receipt.amount == 40_000
    assert {one.receipt.amount for one in by_program if one.receipt.asset == usd.asset} == {8_000}
    assert await stall.paid(usd) == 48_000


async def test_a_token_that_is_not_taken_stands_before_the_operator(stall: Stall) -> None:
    """25: deposits of a token that is not supported were stuck where nobody saw them."""
    ground = stall.ground
    source, target = (ground.account_of(one, ground.spoof) for one in (stall.payer, ground.treasury))
    signature = stall.send(make.pay(source, target, stall.payer.key, 77_000))
    await stall.hear(signature)
    await stall.settle()
    found = await stall.store.anomalies_of(signature)
    assert [(one.reason, one.asset, one.amount) for one in found] == [
        ("mint_not_allowed", str(ground.spoof), 77_000)
    ]


async def test_a_poisoned_entry_delays_no_neighbour(stall: Stall) -> None:
    """I10: one that nothing can be made of, among five that pay."""
    usd = stall.quotes["usd"]
    paying = [stall.send(stall.transfer(usd, 3_000 + number)) for number in range(5)]
    poison = stall.send(stall.transfer(usd, 9_000))
    for node in stall.nodes:
        node.poison = poison
    await stall.hear(*paying[:2], poison, *paying[2:])
    await stall.settle()
    assert await stall.paid(usd) == sum(3_000 + number for number in range(5))
    for node in stall.nodes:
        node.poison = ""
    stall.clock.advance(3_600)
    await stall.settle()
    assert await stall.paid(usd) == sum(3_000 + number for number in range(5)) + 9_000


def test_every_incident_has_a_test_that_exists() -> None:
    rows = re.findall(r"^\| (\d+) \|.*\| `([^`]+)` \|$", (ROOM / "incidents.md").read_text(), re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, INCIDENTS + 1))
    assert len({test for _, test in rows}) == INCIDENTS
    for _, test in rows:
        path, _, name = test.partition("::")
        *classes, function = name.split("::")
        assert not classes
        assert re.search(rf"^(async )?def {function}\(", (ROOT / path).read_text(), re.MULTILINE), test


# A second signature over a message


def resigned(raw: bytes, seed: bytes) -> bytes:
    """The same transaction under another signature of its payer that is just as good.

    Ed25519 as in RFC 8032, section 5.1.6, but for the nonce, which is the signer's to choose.
    """
    transaction = VersionedTransaction.from_bytes(raw)
    signature = Signature.from_bytes(_signed(message_bytes(transaction), seed))
    return bytes(VersionedTransaction.populate(transaction.message, [signature]))


_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_BASE_Y = 4 * pow(5, -1, _P) % _P
_BASE_X = 15112221349535400772501151409588531511454012693041857206046113283949847762202
Point = tuple[int, int]


def _add(one: Point, other: Point) -> Point:
    (x, y), (u, v) = one, other
    cross = _D * x * u * y * v % _P
    return (x * v + u * y) * pow(1 + cross, -1, _P) % _P, (y * v + x * u) * pow(1 - cross, -1, _P) % _P


def _times(scalar: int) -> bytes:
    total: Point = (0, 1)
    power: Point = (_BASE_X, _BASE_Y)
    while scalar:
        total = _add(total, power) if scalar & 1 else total
        power, scalar = _add(power, power), scalar >> 1
    return (total[1] | (total[0] & 1) << 255).to_bytes(32, "little")


def _number(*parts: bytes) -> int:
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little")


def _signed(message: bytes, seed: bytes) -> bytes:
    digest = hashlib.sha512(seed).digest()
    secret = int.from_bytes(digest[:32], "little") & ((1 << 254) - 8) | (1 << 254)
    nonce = _number(b"another nonce", digest[32:], message) % _ORDER
    commitment = _times(nonce)
    challenge = _number(commitment, _times(secret), message) % _ORDER
    return commitment + ((nonce + challenge * secret) % _ORDER).to_bytes(32, "little")
