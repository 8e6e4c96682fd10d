"""Refunds on a chain of three nodes: paid once, wherever the process dies and whatever the chain does."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from solders.transaction import VersionedTransaction

from tempa.adapters.chains.solana import SolanaRpc
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.ids import new_id
from tempa.settlement.journal import OUTSIDE, REFUNDS, UNALLOCATED, first_broken
from tempa.settlement.model import SOL, Treasury
from tempa.settlement.ports import Trouble
from tempa.settlement.post import Proven, Terms
from tempa.settlement.quorum import Agreed, Quorum, Rule
from tempa.settlement.refund_order import Order, order_of
from tempa.settlement.refunding import LAG_BLOCKS, LIFE_BLOCKS, Refunder
from tempa.settlement.refunds import NewRefund, Outcome, Refund, RefundState, Signed, fault_of
from tempa.testing.clock import ManualClock
from tempa.testing.devchain import instructions as make
from tempa.testing.devchain.blocks import Commitment
from tempa.testing.devchain.chain import DevChain
from tempa.testing.devchain.faults import Fault
from tempa.testing.devchain.programs import associated_account
from tempa.testing.devchain.wallet import Wallet, open_nonce, with_nonce
from tests.integration.chains.conftest import Connect

FINAL_SLOTS = 33
TERMS = Terms(operator="operator")
GONE_BLOCKS = LIFE_BLOCKS + 2 * LAG_BLOCKS + FINAL_SLOTS + 2
LAMPORTS = 7_000_000


@dataclass
class Desk:
    """The signer: it has the treasury's wallet, and keeps what it signed."""

    chain: DevChain
    signed: list[Signed] = field(default_factory=list)
    amount_off: int = 0
    trouble: str | None = None

    async def sign(self, refund: Refund, order: Order) -> Signed | Trouble:
        """By instructions of its own: what is kept of it has been held against ours."""
        assert order.payer == str(self.chain.treasury.key)
        if self.trouble is not None:
            return Trouble("call_refused", "desk", detail=self.trouble)
        wallet, target = self.chain.treasury, Pubkey.from_string(refund.destination)
        amount = refund.amount + self.amount_off
        memo = make.memo(f"tempa:refund:{refund.id}")
        raw = wallet.signed(memo, *self._transfer(wallet, refund, target, amount))
        block = self.chain.cluster.block(Commitment.FINALIZED)
        signature = str(VersionedTransaction.from_bytes(raw).signatures[0])
        self.signed.append(Signed(raw, signature, block.height + LIFE_BLOCKS))
        return self.signed[-1]

    def _transfer(self, wallet: Wallet, refund: Refund, target: Pubkey, amount: int) -> list[Any]:
        if refund.asset == SOL:
            return [make.pay_sol(wallet.key, target, amount)]
        mint = Pubkey.from_string(refund.asset)
        source, account = wallet.account(mint), associated_account(target, mint)
        opened = make.open_associated(wallet.key, target, mint)
        return [opened, make.pay_checked(source, mint, account, wallet.key, amount, 6)]


@dataclass
class House:
    """Everything that a refund needs, on one store."""

    chain: DevChain
    store: SqliteStore
    quorum: Quorum
    nodes: list[SolanaRpc]
    desk: Desk

    def refunder(self, **how: Any) -> Refunder:
        parts: dict[str, Any] = {
            "store": self.store,
            "quorum": self.quorum,
            "terms": TERMS,
            "signer": self.desk,
            "outlets": self.nodes[:1],
        }
        return Refunder(**(parts | how))

    async def suspended(self, *transfers: Any) -> Refund:
        """Money that names nobody came, and is to be sent back to a wallet that was never used."""
        signature = self.chain.payer.send(*transfers)
        self.chain.cluster.tick(FINAL_SLOTS)
        agreed = await self.quorum.check(signature)
        assert isinstance(agreed, Agreed)
        await self.store.post_credits(Proven(verdict=agreed.verdict, terms=TERMS))
        anomaly = next(one for one in await self.store.anomalies(10, None) if one.signature == signature)
        return await self.asked(anomaly.id, str(Keypair().pubkey()))

    async def asked(self, anomaly_id: str, destination: str) -> Refund:
        """As an operator does."""
        new = NewRefund(id=new_id("ref"), anomaly_id=anomaly_id, destination=destination, note="Ana")
        refund = await self.store.request_refund(new)
        assert refund is not None
        return refund

    async def sol(self, lamports: int = LAMPORTS) -> Refund:
        return await self.suspended(make.pay_sol(self.chain.payer.key, self.chain.treasury.key, lamports))

    async def token(self, amount: int = 5_000) -> Refund:
        chain = self.chain
        source, target = chain.payer.account(chain.mint), chain.treasury.account(chain.mint)
        return await self.suspended(make.pay(source, target, chain.payer.key, amount))

    async def now(self, refund: Refund) -> Refund:
        found = await self.store.refund(refund.id)
        assert found is not None
        return found

    def paid(self, refund: Refund) -> int:
        """What the destination has, by the chain's own account of it."""
        target = Pubkey.from_string(refund.destination)
        if refund.asset == SOL:
            account = self.chain.cluster.bank.account(target)
            return 0 if account is None else account.lamports
        account = self.chain.cluster.bank.account(associated_account(target, self.chain.mint))
        return 0 if account is None else int.from_bytes(account.data[64:72], "little")

    def landed(self) -> int:
        signatures = {one.signature for one in self.desk.signed}
        return sum(self.chain.cluster.find(signature) is not None for signature in signatures)

    async def until(self, refund: Refund, *states: RefundState, slots: int = FINAL_SLOTS) -> Refund:
        refunder = self.refunder()
        for _ in range(60):
            await refunder.round()
            self.chain.cluster.tick(slots)
            if (await self.now(refund)).state in states:
                return await self.now(refund)
        raise AssertionError((await self.now(refund)).state)


@pytest.fixture
async def house(
    chain: DevChain, connect: Connect, treasury: Treasury, tmp_path: Path
) -> AsyncIterator[House]:
    clock = ManualClock()
    nodes = [connect(number, rate_per_second=1e6, burst=10**6) for number in range(3)]
    quorum = Quorum(nodes, treasury, Rule())
    await quorum.look()
    store = await SqliteStore.open(tmp_path / "tempa.db", clock=clock, wake=InProcessWake(clock))
    yield House(chain, store, quorum, nodes, Desk(chain))
    await store.close()


async def even(house: House, asset: str) -> None:
    """Nothing is reserved, nothing is unexplained, and the chain of hashes is whole."""
    balances = await house.store.balances()
    assert balances[REFUNDS, asset] == 0
    assert balances.get((UNALLOCATED, asset), 0) == 0
    assert balances[OUTSIDE, asset] == 0
    assert first_broken(await house.store.journal(0, 1000)) is None


async def test_a_refund_of_sol_arrives_and_the_books_are_even(house: House) -> None:
    refund = await house.sol()

    ended = await house.until(refund, RefundState.FINAL)

    assert house.paid(refund) == LAMPORTS
    assert house.landed() == 1
    assert [one.outcome for one in ended.signings] == [Outcome.FINAL]
    await even(house, SOL)
    assert await house.store.anomalies(10, None) == []


async def test_a_refund_of_tokens_goes_to_the_wallets_own_account(house: House) -> None:
    refund = await house.token()

    await house.until(refund, RefundState.FINAL)

    assert house.paid(refund) == 5_000
    await even(house, refund.asset)


async def test_without_a_signer_what_is_asked_for_waits(house: House) -> None:
    refund = await house.sol()

    await house.refunder(signer=None).round()
    house.desk.trouble = "the key is locked"
    await house.refunder().round()

    assert (await house.now(refund)).state is RefundState.REQUESTED


async def test_what_is_late_to_land_is_never_paid_twice(house: House) -> None:
    """stake-o-matic 169: the first transaction lands just when a hasty program has signed a second."""
    refund = await house.sol()
    house.chain.cluster.holding = True
    refunder = house.refunder()
    await refunder.round()  # signed
    await refunder.round()  # sent, and held back by the leaders
    (first,) = house.desk.signed
    for _ in range(3):
        house.chain.cluster.tick(35)
        await refunder.round()
        assert (await house.now(refund)).state is RefundState.BROADCAST

    assert house.chain.cluster.land(first.signature)
    house.chain.cluster.holding = False
    await house.until(refund, RefundState.FINAL)

    assert house.desk.signed == [first]
    assert house.paid(refund) == LAMPORTS


async def test_another_is_signed_only_when_the_first_can_land_no_more(house: House) -> None:
    refund = await house.sol()
    house.chain.cluster.holding = True
    refunder = house.refunder()
    await refunder.round()
    await refunder.round()
    (first,) = house.desk.signed

    steps = 0
    while (await house.now(refund)).state is RefundState.BROADCAST:
        steps += 1
        house.chain.cluster.tick(10)
        await refunder.round()

    # Every node's finalized height is past what the first is good for, so that no leader may take it.
    assert not house.chain.cluster.land(first.signature)
    assert (await house.now(refund)).state is RefundState.EXPIRED
    assert 10 * steps > LIFE_BLOCKS
    house.chain.cluster.holding = False
    ended = await house.until(refund, RefundState.FINAL)
    assert [one.outcome for one in ended.signings] == [Outcome.EXPIRED, Outcome.FINAL]
    assert (house.landed(), house.paid(refund)) == (1, LAMPORTS)


async def test_nodes_that_hide_it_do_not_have_it_signed_again(house: House) -> None:
    """First all say that it is not there; asked again, the third shows it."""
    refund = await house.sol()
    refunder = house.refunder()
    await refunder.round()
    await refunder.round()
    house.chain.cluster.tick(GONE_BLOCKS)
    for number, times in enumerate((2, 2, 1)):
        house.chain.nodes[number].faults["getTransaction"] = [Fault("null", times=times)]

    await refunder.round()

    stands = await house.now(refund)
    assert stands.state is not RefundState.EXPIRED
    assert len(house.desk.signed) == 1
    await house.until(refund, RefundState.FINAL)


async def test_a_node_that_is_behind_is_no_witness(house: House) -> None:
    """It does not show the transaction because it does not know the blocks yet."""
    refund = await house.sol()
    house.chain.cluster.holding = True
    refunder = house.refunder()
    await refunder.round()
    await refunder.round()
    for number in (0, 1):
        house.chain.nodes[number].lag_slots = 140  # fit enough to be asked
    house.chain.cluster.tick(LIFE_BLOCKS + LAG_BLOCKS + LAG_BLOCKS + FINAL_SLOTS - 60)
    await refunder.round()
    assert (await house.now(refund)).state is RefundState.BROADCAST

    for node in house.chain.nodes:
        node.lag_slots = 0
    house.chain.cluster.tick(100)
    await refunder.round()

    assert (await house.now(refund)).state is RefundState.EXPIRED


async def test_what_fails_on_the_chain_waits_in_suspense_again(house: House) -> None:
    """More than the treasury has left: the fee is gone, and is an expense."""
    refund = await house.sol()
    wallet = house.chain.treasury
    held = house.chain.cluster.bank.account(wallet.key)
    assert held is not None
    wallet.send(make.pay_sol(wallet.key, house.chain.payer.key, held.lamports - LAMPORTS // 2))
    house.chain.cluster.tick(FINAL_SLOTS)

    failed = await house.until(refund, RefundState.FAILED)

    assert failed.reason is not None
    assert "failed on the chain" in failed.reason
    assert house.paid(refund) == 0
    balances = await house.store.balances()
    assert (balances[UNALLOCATED, SOL], balances[REFUNDS, SOL]) == (-LAMPORTS, 0)
    assert balances["expense:fees", SOL] > 0
    waiting = [one for one in await house.store.anomalies(10, None) if one.receipt is not None]
    assert [one.amount for one in waiting] == [LAMPORTS]


async def test_what_lands_and_took_another_amount_is_found_and_nothing_is_signed_again(house: House) -> None:
    """As if it had been kept unseen."""
    refund = await house.sol()
    house.desk.amount_off = 1
    signed = await house.desk.sign(refund, order_of(refund, house.quorum.treasury.accounts[0]))
    assert isinstance(signed, Signed)
    await house.store.keep_signing(refund.id, signed)
    refunder = house.refunder()
    for _ in range(4):
        await refunder.round()
        house.chain.cluster.tick(FINAL_SLOTS)
    house.chain.cluster.tick(GONE_BLOCKS)

    await refunder.round()

    assert (await house.now(refund)).state is RefundState.BROADCAST
    assert len(house.desk.signed) == 1
    assert "refund_mismatch" in await house.store.anomaly_counts()


async def test_a_node_that_is_away_delays_it_only(house: House) -> None:
    refund = await house.sol()
    for node in house.chain.nodes:
        node.faults["sendTransaction"] = [Fault("http", status=502, times=3)]
        node.faults["getBlockHeight"] = [Fault("http", status=502, times=2)]

    await house.until(refund, RefundState.FINAL)

    assert (house.landed(), house.paid(refund)) == (1, LAMPORTS)


def test_what_is_no_transaction_of_its_signature_is_not_kept(chain: DevChain) -> None:
    wallet, target = chain.treasury, Pubkey.new_unique()
    raw = wallet.signed(make.pay_sol(wallet.key, target, 5))
    signature = str(VersionedTransaction.from_bytes(raw).signatures[0])
    nonce = with_nonce(wallet, open_nonce(wallet, "refunds"), make.pay_sol(wallet.key, target, 5))
    unsigned = bytes([raw[0]]) + bytes(64) + raw[65:]

    assert fault_of(Signed(raw, signature, 1)) is None
    assert "not that of the bytes" in str(fault_of(Signed(raw, str(Pubkey.new_unique()), 1)))
    assert "no transaction" in str(fault_of(Signed(raw[:-3], signature, 1)))
    assert "no transaction" in str(fault_of(Signed(b"", signature, 1)))
    assert "not signed" in str(fault_of(Signed(unsigned, "1" * 64, 1)))
    nonce_signature = str(VersionedTransaction.from_bytes(nonce).signatures[0])
    assert "never expire" in str(fault_of(Signed(nonce, nonce_signature, 1)))


# Dying anywhere


class Died(Exception):  # noqa: N818 - it says what is the case
    """The process is gone: between two of its steps."""


class Dying:
    """Stands before a store, a signer or nodes, and dies before or behind the `at`-th call."""

    def __init__(self, real: Any, death: Death) -> None:
        self._real, self._death = real, death

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._real, name)
        if not callable(member):
            return member

        async def call(*args: Any, **how: Any) -> Any:
            self._death.pass_by()
            answer = await cast("Callable[..., Any]", member)(*args, **how)
            self._death.pass_by()
            return answer

        return call


@dataclass
class Death:
    at: int
    passed: int = 0

    def pass_by(self) -> None:
        self.passed += 1
        if self.passed == self.at:
            raise Died


PASSAGES = 12  # of one refund that nothing disturbs: before and behind each call that changes something


async def to_the_end(house: House, refunder: Refunder) -> None:
    while stands := await house.store.open_refunds("", 10):
        await refunder.step(stands[0])
        house.chain.cluster.tick(FINAL_SLOTS)


@pytest.mark.parametrize("at", range(1, PASSAGES + 1))
async def test_wherever_it_dies_it_is_paid_once(house: House, at: int) -> None:
    """What comes up again goes on from what is on disk."""
    death = Death(at)
    refund = await house.sol()
    dying = house.refunder(
        store=Dying(house.store, death),
        signer=Dying(house.desk, death),
        outlets=[Dying(node, death) for node in house.nodes[:1]],
    )
    with pytest.raises(Died):
        await to_the_end(house, dying)

    ended = await house.until(refund, RefundState.FINAL)

    assert house.paid(refund) == refund.amount
    assert house.landed() == 1
    assert [one.outcome for one in ended.signings if one.outcome is Outcome.FINAL] == [Outcome.FINAL]
    await even(house, SOL)


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_the_chain_does_nobody_is_paid_twice(house: House, seed: int) -> None:
    """Held back, dropped, forked away, landed late; nodes that are silent; two refunders at once."""
    luck = random.Random(seed)
    cluster = house.chain.cluster
    refunds = [await house.sol(LAMPORTS + number) for number in range(3)]
    refunders = [house.refunder(), house.refunder(outlets=house.nodes)]
    for _ in range(60):
        match luck.randint(0, 7):
            case 0:
                cluster.holding = luck.random() < 0.6
            case 1 if cluster.pool:
                cluster.land(luck.choice(sorted(cluster.pool)))
            case 2 if cluster.pool:
                cluster.drop(luck.choice(sorted(cluster.pool)))
            case 3:
                final = cluster.block(Commitment.FINALIZED).slot
                cluster.fork(luck.randint(final, cluster.tip.slot - 1))
            case 4:
                node = luck.choice(house.chain.nodes)
                node.faults["getTransaction"] = [Fault(luck.choice(["null", "http"]), status=502)]
            case _:
                cluster.tick(luck.choice([1, 5, 40, 200]))
        await luck.choice(refunders).round()
        for refund in refunds:
            assert house.paid(refund) in {0, refund.amount}
    cluster.holding = False
    for node in house.chain.nodes:
        node.faults.clear()

    for refund in refunds:
        await house.until(refund, RefundState.FINAL)
        assert house.paid(refund) == refund.amount
    await even(house, SOL)
