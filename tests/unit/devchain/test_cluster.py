"""The cluster keeps the chain's promises: what is final stays, what was on a fork is gone, and can return."""

from __future__ import annotations

import hashlib
import random

import pytest
from solders.keypair import Keypair
from solders.signature import Signature
from solders.transaction import VersionedTransaction

from tempa.testing.devchain.admission import RpcFault
from tempa.testing.devchain.blocks import Commitment, Mode
from tempa.testing.devchain.cluster import Cluster
from tempa.testing.devchain.devnet import PAYER_FUNDS, Devnet
from tempa.testing.devchain.instructions import memo, pay, pay_sol
from tempa.testing.devchain.tokens import token_account
from tempa.testing.devchain.wallet import Wallet, keypair, open_nonce, signed, with_nonce
from tests.unit.webhooks.test_ed25519 import BASE_Y, ORDER, read_point, times


def net(mode: Mode = Mode.TOWER) -> Devnet:
    return Devnet(Cluster(mode=mode))


def paid(devnet: Devnet, amount: int, word: str = "") -> bytes:
    source, target = (wallet.account(devnet.mint) for wallet in (devnet.payer, devnet.treasury))
    steps = [pay(source, target, devnet.payer.key, amount)]
    return devnet.payer.signed(memo(word), *steps)


def treasury_units(devnet: Devnet, slot: int | None = None) -> int:
    key = devnet.treasury.account(devnet.mint)
    at = devnet.cluster.tip.slot if slot is None else slot
    state = token_account(devnet.cluster.account(key, at))
    assert state is not None
    return state.amount


@pytest.mark.parametrize(("mode", "slots_to_final"), [(Mode.TOWER, 32), (Mode.ALPENGLOW, 1)])
def test_a_payment_rises_through_the_commitments(mode: Mode, slots_to_final: int) -> None:
    cluster = (devnet := net(mode)).cluster
    landed = cluster.find(cluster.submit(paid(devnet, 5)))
    assert landed is not None
    reached = {Commitment.PROCESSED: 0}
    for slots in range(1, 40):
        cluster.tick()
        for commitment in Commitment:
            if cluster.block(commitment).slot >= landed.slot:
                reached.setdefault(commitment, slots)

    assert reached == {
        Commitment.PROCESSED: 0,
        Commitment.CONFIRMED: 1,
        Commitment.FINALIZED: slots_to_final,
    }


def test_a_fork_takes_back_everything_and_the_same_bytes_land_again() -> None:
    cluster = (devnet := net()).cluster
    base, lamports = cluster.tip.slot, cluster.bank.account(devnet.payer.key)
    cluster.tick()
    raws = [paid(devnet, 5, "one"), paid(devnet, 7, "two")]
    signatures = [cluster.submit(raw) for raw in raws]
    assert treasury_units(devnet) == 12

    assert cluster.fork(base) == signatures
    assert treasury_units(devnet) == 0
    assert cluster.bank.account(devnet.payer.key) == lamports  # the fees, too
    assert [cluster.find(signature) for signature in signatures] == [None, None]

    assert cluster.land(signatures[1])
    again = cluster.find(signatures[1])
    assert again is not None
    assert (again.raw, again.slot) == (raws[1], base + 2)  # the abandoned slot stays empty for good
    assert treasury_units(devnet) == 7


def test_an_account_that_a_fork_takes_back_is_not_there() -> None:
    cluster = (devnet := net()).cluster
    stranger = keypair("stranger").pubkey()
    base = cluster.tip.slot
    cluster.tick()
    devnet.faucet.drop(stranger, 10_000_000)
    cluster.fork(base)

    assert cluster.bank.account(stranger) is None


def test_what_is_final_cannot_be_forked_away() -> None:
    cluster = net().cluster
    final = cluster.block(Commitment.FINALIZED).slot
    with pytest.raises(ValueError, match="final"):
        cluster.fork(final - 1)
    cluster.fork(final)

    assert cluster.block(Commitment.FINALIZED).slot == final


def test_under_alpenglow_only_the_processed_tip_can_be_skipped() -> None:
    cluster = net(Mode.ALPENGLOW).cluster
    with pytest.raises(ValueError, match="final"):
        cluster.fork(cluster.tip.slot - 2)
    cluster.fork(cluster.tip.slot - 1)


def test_a_blockhash_of_an_abandoned_fork_is_worth_nothing() -> None:
    cluster = (devnet := net()).cluster
    base = cluster.tip.slot
    cluster.tick()
    step = pay_sol(devnet.payer.key, devnet.treasury.key, 5)
    signature = cluster.submit(signed(devnet.payer.pair, [step], cluster.tip.blockhash))
    cluster.fork(base)

    assert not cluster.land(signature)


def test_a_blockhash_lives_for_150_blocks_however_many_slots_that_takes() -> None:
    cluster = (devnet := net()).cluster
    blockhash = cluster.tip.blockhash
    raws = [
        signed(devnet.payer.pair, [pay_sol(devnet.payer.key, devnet.treasury.key, n)], blockhash)
        for n in (1, 2)
    ]
    cluster.tick(150, skip=400)
    cluster.submit(raws[0])
    cluster.tick()
    with pytest.raises(RpcFault) as caught:
        cluster.submit(raws[1])

    assert (caught.value.code, caught.value.data["err"]) == (-32002, "BlockhashNotFound")
    lost = cluster.submit(raws[1], skip_preflight=True)  # taken, and never seen again
    assert cluster.find(lost) is None


def test_a_durable_nonce_outlives_blockhashes_and_is_used_up_once() -> None:
    cluster = (devnet := net()).cluster
    nonce = open_nonce(devnet.payer, "nonce")
    cluster.tick()
    raws = [
        with_nonce(devnet.payer, nonce, pay_sol(devnet.payer.key, devnet.treasury.key, n)) for n in (1, 2)
    ]
    cluster.expire()
    assert cluster.find(cluster.submit(raws[0])) is not None
    with pytest.raises(RpcFault, match="Blockhash not found"):
        cluster.submit(raws[1])


def test_the_same_bytes_are_processed_once() -> None:
    cluster = (devnet := net()).cluster
    raw = paid(devnet, 5)
    cluster.submit(raw)
    with pytest.raises(RpcFault) as caught:
        cluster.submit(raw)
    cluster.submit(raw, skip_preflight=True)

    assert (caught.value.code, caught.value.data["err"]) == (-32002, "AlreadyProcessed")
    assert treasury_units(devnet) == 5


def signed_anew(raw: bytes, pair: Keypair) -> bytes:
    """The same message under another signature of the same key: Ed25519 lets the signer choose the nonce."""
    message = VersionedTransaction.from_bytes(raw).message
    data, public, nonce = bytes(message), bytes(pair.pubkey()), 4711
    secret = bytearray(hashlib.sha512(bytes(pair)[:32]).digest()[:32])
    secret[0] &= 248
    secret[31] = secret[31] & 127 | 64
    x, y = times(nonce, read_point(BASE_Y.to_bytes(32, "little")))
    point = (y | (x & 1) << 255).to_bytes(32, "little")
    k = int.from_bytes(hashlib.sha512(point + public + data).digest(), "little")
    s = (nonce + k * int.from_bytes(secret, "little")) % ORDER
    signature = Signature.from_bytes(point + s.to_bytes(32, "little"))
    return bytes(VersionedTransaction.populate(message, [signature]))


def test_a_message_under_another_signature_does_not_land_twice() -> None:
    cluster = (devnet := net()).cluster
    raw = paid(devnet, 5)
    again = signed_anew(raw, devnet.payer.pair)
    assert VersionedTransaction.from_bytes(again).verify_with_results() == [True]
    cluster.submit(raw)
    second = cluster.submit(again, skip_preflight=True)

    assert cluster.find(second) is None
    assert treasury_units(devnet) == 5
    with pytest.raises(RpcFault, match="already been processed"):
        cluster.submit(again)


def test_a_transaction_that_fails_pays_its_fee_and_moves_nothing() -> None:
    cluster = (devnet := net()).cluster
    before = cluster.bank.account(devnet.payer.key)
    signature = cluster.submit(paid(devnet, 2**62), skip_preflight=True)
    landed, after = cluster.find(signature), cluster.bank.account(devnet.payer.key)

    assert landed is not None
    assert landed.execution.err == {"InstructionError": [1, {"Custom": 1}]}  # token error 1: too little
    assert before is not None
    assert after is not None
    assert before.lamports - after.lamports == 5_000
    assert treasury_units(devnet) == 0


def test_preflight_keeps_a_failing_transaction_off_the_chain() -> None:
    cluster = (devnet := net()).cluster
    raw = paid(devnet, 2**62)
    with pytest.raises(
        RpcFault, match=r"Error processing Instruction 1: custom program error: 0x1"
    ) as caught:
        cluster.submit(raw)

    assert caught.value.code == -32002
    assert caught.value.data["logs"]
    assert not cluster.tip.landed


def test_who_cannot_pay_the_fee_leaves_no_trace() -> None:
    cluster = (devnet := net()).cluster
    poor = Wallet(cluster, keypair("poor"))
    signature = poor.send(pay_sol(poor.key, devnet.treasury.key, 1), skip_preflight=True)

    assert cluster.find(signature) is None


def test_a_forged_signature_is_refused() -> None:
    cluster = (devnet := net()).cluster
    raw = bytearray(paid(devnet, 5))
    raw[10] ^= 1
    with pytest.raises(RpcFault) as caught:
        cluster.submit(bytes(raw))

    assert caught.value.code == -32003


@pytest.mark.parametrize("raw", [b"", b"\x01", b"\xff" * 100, bytes(1233)])
def test_what_is_no_transaction_is_refused(raw: bytes) -> None:
    with pytest.raises(RpcFault) as caught:
        net().cluster.submit(raw)

    assert caught.value.code in (-32602, -32003)


def test_what_is_held_lands_when_it_is_let_and_what_is_dropped_never() -> None:
    cluster = (devnet := net()).cluster
    cluster.holding = True
    kept, lost = cluster.submit(paid(devnet, 5, "kept")), cluster.submit(paid(devnet, 7, "lost"))
    assert treasury_units(devnet) == 0
    cluster.drop(lost)

    assert cluster.land(kept)
    assert treasury_units(devnet) == 5
    with pytest.raises(KeyError):
        cluster.land(lost)


def test_an_account_is_told_as_it_was() -> None:
    cluster = (devnet := net()).cluster
    marks = []
    for amount in (1, 2, 4):
        cluster.submit(paid(devnet, amount, str(amount)))
        marks.append(cluster.tip.slot)
        cluster.tick()

    assert [treasury_units(devnet, slot) for slot in (marks[0] - 1, *marks)] == [0, 1, 3, 7]


def test_two_clusters_of_a_seed_are_the_same_and_of_two_seeds_are_not() -> None:
    one, two, other = (Cluster(seed=seed) for seed in ("a", "a", "b"))

    assert one.tip.blockhash == two.tip.blockhash
    assert one.genesis_hash == two.genesis_hash != other.genesis_hash
    assert one.tip.blockhash != other.tip.blockhash


@pytest.mark.parametrize("seed", range(12))
def test_after_any_history_balances_are_what_the_live_payments_sum_to(seed: int) -> None:
    """A model of one line (the sum over what is live) against 120 dice-thrown acts, forks within forks."""
    dice = random.Random(seed)
    cluster = (devnet := net(dice.choice(list(Mode)))).cluster
    amounts: dict[str, int] = {}
    dead: set[str] = set()
    for step in range(120):
        deed = dice.choice(["pay", "pay", "tick", "fork", "land", "drop", "fail"])
        if deed in ("pay", "fail"):
            amount = dice.randint(1, 1000) if deed == "pay" else PAYER_FUNDS * 2
            raw = paid(devnet, amount, str(step))
            amounts[cluster.submit(raw, skip_preflight=True)] = amount if deed == "pay" else 0
        elif deed == "tick":
            cluster.tick(dice.randint(1, 4), skip=dice.randint(0, 2))
        elif deed == "fork":
            cluster.fork(dice.randint(cluster.block(Commitment.FINALIZED).slot, cluster.tip.slot - 1))
        elif cluster.pool:
            signature = dice.choice(sorted(cluster.pool))
            if deed == "drop":
                cluster.drop(signature)
                dead.add(signature)
            else:
                cluster.land(signature)
        live = {signature for signature in amounts if cluster.find(signature)}
        assert not live & dead
        assert treasury_units(devnet) == sum(amounts[signature] for signature in live)
        final = cluster.block(Commitment.FINALIZED).slot
        settled = [s for s in live if (found := cluster.find(s)) and found.slot <= final]
        assert treasury_units(devnet, final) == sum(amounts[signature] for signature in settled)


def test_a_stranger_key_signs_nothing() -> None:
    """A signature of another key over the right message is no signature."""
    cluster = (devnet := net()).cluster
    known = VersionedTransaction.from_bytes(paid(devnet, 5))
    forged = VersionedTransaction.populate(known.message, [Keypair().sign_message(b"another")])
    with pytest.raises(RpcFault) as caught:
        cluster.submit(bytes(forged))

    assert caught.value.code == -32003
