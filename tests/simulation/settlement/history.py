"""A random history: payments and forks, nodes that lag and lie, processes that die; then quiet, and books."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from tempa.settlement.anomalies import Redriven
from tempa.settlement.inbox import Incoming
from tempa.testing.devchain.blocks import Commitment
from tests.simulation.settlement import oracle as must
from tests.simulation.settlement.chain import FAR_BEHIND_SLOTS, Lie, Weather
from tests.simulation.settlement.ground import FINAL_SLOTS
from tests.simulation.settlement.payments import delegate, revoke
from tests.simulation.settlement.scene import INSTANCES, Scene
from tests.simulation.settlement.server import COMMANDS, LEASE_SECONDS, Died

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tempa.settlement.anomalies import Anomaly
    from tempa.settlement.model import TreasuryAccount
    from tests.simulation.settlement.payments import Payment

SLOT_SECONDS = 0.4
SOURCES = ("helius", "quicknode", "generic", "websocket")
_STRAYS = frozenset({"mint_not_allowed", "account_not_listed"})
_QUIET_ROUNDS = 12
_PATIENCE_SECONDS = 1_000.0  # longer than any pause between two lookups that a person could end


@dataclass(kw_only=True)
class History(Scene):
    """One, of so many steps, from its seed."""

    steps: int

    async def play(self) -> None:
        """All of it, with the checks between the steps and at the end. Raises AssertionError."""
        await self.begin()
        try:
            for _ in range(self.steps):
                await self._step()
            await self._quiet()
            await self._judge()
        finally:
            await self.store.close()

    # Steps

    async def _step(self) -> None:
        steps: dict[Callable[[], Awaitable[None]], int] = {
            self._pay: 8,
            self._tick: 6,
            self._settle: 6,
            self._deliver: 5,
            self._fork: 5,
            self._land: 4,
            self._sweep: 3,
            self._follow: 2,
            self._turn_weather: 3,
            self._arm: 4,
            self._skew: 1,
            self._suspend: 1,
            self._expire: 3,
            self._operate: 4,
            self._delegate: 1,
            self._back_up: 1,
        }
        (step,) = self.rng.choices(list(steps), list(steps.values()))
        lives = len(self.ops)
        await self._try(step)
        if step in {self._settle, self._operate, self._suspend, self._expire} or len(self.ops) > lives + 1:
            await self._check()

    async def _try(self, step: Callable[[], Awaitable[None]]) -> None:
        """A step, and a new process if it was the end of the one there was."""
        self.ops.append(step.__name__.removeprefix("_"))
        with contextlib.suppress(Died):
            await step()
        if self.server.fragile.dead is not None:
            await self._restart()

    def _note(self, told: str) -> None:
        self.ops[-1] += f" {told}"
        self.seen[f"{self.ops[-1].partition(' ')[0]} {told}"] += 1

    async def _pay(self) -> None:
        """One to three payments of any shape, into one block."""
        for _ in range(self.rng.randint(1, 3)):
            self._send(self.cashier.payment())

    def _send(self, payment: Payment) -> None:
        signature = self.chain.submit(payment.raw, skip_preflight=True)
        if self.chain.find(signature) is None:
            return  # the very same was sent before
        self.oracle.sent[signature] = payment
        self.heard.append(signature)
        self._note(payment.shape)

    async def _tick(self) -> None:
        """Slots pass, some of them without a block."""
        slots = self.rng.choice([1, 2, 5, 20, 40])
        self._pass(slots, self.rng.choice([0, 0, 1, 3]))

    def _pass(self, slots: int, skipped: int = 0) -> None:
        self.chain.tick(slots, skip=skipped)
        self.clock.advance((slots + skipped) * SLOT_SECONDS)

    async def _fork(self) -> None:
        """What is not final is abandoned: it may land again, in any order, or never."""
        final = self.chain.block(Commitment.FINALIZED).slot
        depth = min(self.chain.tip.slot - final, 12)
        if depth < 1:
            return
        gone = self.chain.fork(self.chain.tip.slot - self.rng.randint(1, depth))
        self.seen["rollbacks"] += len(gone)
        self.seen["forks"] += 1

    async def _land(self) -> None:
        """Of what was forgotten some lands again, some is lost for good."""
        for signature in self.rng.sample(sorted(self.chain.pool), min(3, len(self.chain.pool))):
            if self.rng.random() < 0.2:
                self.chain.drop(signature)
                self.seen["drops"] += 1
            else:
                self.seen["re-landings"] += self.chain.land(signature)

    async def _deliver(self) -> None:
        """Providers tell of some: early, late, twice, in any order, or of what never was."""
        if not self.heard or self.rng.random() >= self.pushes:
            return
        told = self.rng.choices(self.heard, k=self.rng.randint(1, 6))
        if self.rng.random() < 0.2:
            told.append(self._made_up())
        incoming = Incoming(source=self.rng.choice(SOURCES), raw=b"{}", signatures=tuple(dict.fromkeys(told)))
        for _ in range(self.rng.randint(1, 2)):
            taken = await self.server.fragile.take_in(incoming)
            self.seen["duplicate deliveries"] += taken.duplicates

    def _made_up(self) -> str:
        """A well-formed signature of nothing; lookups for it never end, and hold up nobody."""
        return str(self.ground.stranger.pair.sign_message(self.rng.randbytes(8)))

    async def _settle(self) -> None:
        if self.rng.random() < 0.7 or not self.server.watch.ready.is_set():
            await self.server.look()
        await self.server.settle()

    async def _sweep(self) -> None:
        await self.server.look()
        await self.server.sweeper.sweep()

    async def _follow(self) -> None:
        await self.server.look()
        await self.server.follower.look()

    async def _turn_weather(self) -> None:
        """Some node is well again or is not; it may lag, a little or far."""
        node = self.rng.choice(self.nodes)
        node.weather = self.rng.choice([Weather.FAIR, Weather.FAIR, *Weather])
        node.lag_slots = self.rng.choice([0, 0, 3, 30, FAR_BEHIND_SLOTS])
        self._note(node.weather)

    async def _arm(self) -> None:
        """The process will die at a command, before it or behind its commit."""
        command, after = self.rng.choice(sorted(COMMANDS)), self.rng.random() < 0.5
        self.server.fragile.die_at(command, after=after, passage=self.rng.choice([1, 1, 2, 5]))

    async def _restart(self) -> None:
        """Another process: the leases of the dead one are void, or lapse; it may find an older disk."""
        dead = self.server.fragile.dead
        assert dead is not None
        self.seen[f"died {'after' if dead[1] else 'before'} {dead[0]}"] += 1
        self.ops.append(f"died {dead}")
        if self.rng.random() < 0.5:
            await self.store.close()
            if self.kept is not None and self.rng.random() < 0.5:
                self._restore()
            self.store = await self.shelf.open(self.clock)
        if self.shelf.shared or self.rng.random() < 0.5:
            self.clock.advance(LEASE_SECONDS + 1)
        else:
            await self.store.free_inbox()
        self.server = self.process()

    async def _back_up(self) -> None:
        if self.shelf.back_up():
            self.kept = (self.checked, dict(self.oracle.by_hand))

    def _restore(self) -> None:
        """What was credited since is credited again from the chain; what people did since is lost."""
        assert self.kept is not None
        self.shelf.restore()
        self.checked, self.oracle.by_hand = self.kept[0], dict(self.kept[1])
        self.ends.clear()
        self.seen["restores"] += 1
        self.ops.append("restored")

    async def _skew(self) -> None:
        """The wall clock is set, by people or by NTP."""
        self.clock.jump(timedelta(seconds=self.rng.choice([-30, -2, 2, 30])))
        self.ends.clear()

    async def _suspend(self) -> None:
        gpu = f"gpu_{self.rng.randrange(INSTANCES)}"
        if await self.store.suspend_instance(gpu):
            self.seen["suspended"] += 1
        else:
            await self._resume(gpu)

    async def _resume(self, gpu: str) -> None:
        """What was left is left: if the clock was set back meanwhile, the end is sooner by it."""
        await self.store.resume_instance(gpu)
        self.ends.clear()

    async def _expire(self) -> None:
        """A while later, or a night: rentals come to their end, and others may begin."""
        self.clock.advance(self.rng.choice([0, 60, 30_000, 100_000]))
        expired = await self.server.fragile.expire_rentals(60.0, 5.0, 100)
        self.seen["rentals ended"] += expired.ended

    async def _operate(self) -> None:
        """A person has an anomaly tried again, or gives its money to a quote."""
        anomalies: list[Anomaly] = await self.store.anomalies(50, None)
        if not anomalies:
            return
        money = [one for one in anomalies if one.receipt is not None]
        some = money if money and self.rng.random() < 0.7 else anomalies
        anomaly = self.rng.choice(sorted(some, key=lambda one: one.key))
        if anomaly.receipt is not None and anomaly.reason in {"no_reference", "memo_mismatch"}:
            await self._give(anomaly)
            return
        outcome = await self.server.fragile.redrive_anomaly(anomaly.id, self.terms)
        self.seen[f"redriven {outcome}"] += 1

    async def _give(self, anomaly: Anomaly) -> None:
        quotes = [one for one in self.oracle.quotes if one.asset == anomaly.asset]
        quote = self.rng.choice([one for one in quotes if one.gpu_instance_id not in self.oracle.contested])
        try:
            await self.server.fragile.resolve_anomaly(anomaly.id, "by hand", self.terms, quote.id)
        finally:  # had the process died: what is on disk counts
            now = await self.store.anomaly(anomaly.id)
            if now.resolved_at is not None:
                self.oracle.by_hand[anomaly.signature or "", anomaly.account or ""] = quote.id
                self.seen["given by hand"] += 1

    async def _delegate(self) -> None:
        """Somebody may move the treasury's tokens: until he may not, that account is credited nothing."""
        raw = revoke(self.ground) if self.is_delegated else delegate(self.ground, self.rng.randint(1, 2**40))
        signature = self.chain.submit(raw, skip_preflight=True)
        if self.chain.find(signature) is not None:
            self.is_delegated = not self.is_delegated
            self._pass(FINAL_SLOTS)
            self.nodes[0].weather, self.nodes[0].lag_slots = Weather.FAIR, 0
            await self.server.look()

    # Checks

    async def _check(self) -> None:
        """What was credited meanwhile is the chain's own, and no rental has become shorter."""
        refused = {row.address for row in self._rows() if row.refusal is not None}
        for recorded in await self.store.receipts(self.checked, must.ALL):
            await must.check_receipt(self.oracle, recorded)
            assert recorded.receipt.account not in refused, "a refused account was credited"
            self.checked = recorded.number
        for instance in await self.store.instances(INSTANCES, None):
            if instance.rental is not None:
                key = (instance.id, instance.rental.started_at)
                before = self.ends.get(key)
                assert before is None or instance.rental.expires_at >= before, "a rental became shorter"
                self.ends[key] = instance.rental.expires_at

    async def _check_strays(self) -> None:
        """What is not taken here is shown to a person once it was heard of; no listed account tells of it."""
        anomalies = await self.store.anomalies(must.ALL, None)
        shown = {one.signature for one in anomalies if one.reason in _STRAYS and one.amount}
        for signature in sorted(self.oracle.strays()):
            if await self.store.inbox_of(signature):
                assert signature in shown, f"{signature} is shown to nobody"
                self.seen["strays shown"] += 1

    def _rows(self) -> Sequence[TreasuryAccount]:
        return () if self.server.watch.treasury is None else self.server.watch.treasury.accounts

    async def _quiet(self) -> None:
        """The nodes are well, the liar is gone, the operator does what he can, and time passes."""
        self.ops.append("quiet")
        self.seen["lies"] += sum(node.told_lies for node in self.nodes)
        for node in self.nodes:
            node.weather, node.lag_slots, node.lie = Weather.FAIR, 0, Lie.NONE
        if self.is_delegated:
            self.chain.submit(revoke(self.ground), skip_preflight=True)
        self._pass(FINAL_SLOTS + 1)
        for number in range(INSTANCES):
            await self._resume(f"gpu_{number}")
        self.server = self.process()
        for _ in range(_QUIET_ROUNDS):
            await self.server.look()
            await self.server.sweeper.sweep()
            await self.server.settle()
            redriven = await self._redrive_all()
            await self.server.settle()
            if not redriven and await self._is_settled():
                return
            self.clock.advance(_PATIENCE_SECONDS)

    async def _redrive_all(self) -> int:
        """How many came further by it."""
        outcomes = [
            await self.store.redrive_anomaly(anomaly.id, self.terms)
            for anomaly in await self.store.anomalies(must.ALL, None)
        ]
        credited = outcomes.count(Redriven.CREDITED)
        self.seen["redriven credited"] += credited
        return credited

    async def _is_settled(self) -> bool:
        """All that is final and moves the treasury's money was looked up, and whatever else was heard of."""
        for signature, is_money in self.oracle.final().items():
            entries = await self.store.inbox_of(signature)
            if any(entry.next_at is not None for entry in entries) or (is_money and not entries):
                return False
        return True

    async def _judge(self) -> None:
        await self._check()
        self.seen["credits"] += await must.check_books(self.oracle, self.store)
        ended = self.seen["rentals ended"] + self.seen["died after expire_rentals"] > 0
        await must.check_quotes(self.oracle, self.store, may_change_hands=ended)
        self.seen["late credits"] += self.oracle.late_credits()
        await self._check_strays()
        self.seen["transactions"] += len(self.oracle.sent)
        self.seen["histories"] += 1
        for reason, count in (await self.store.anomaly_counts()).items():
            self.seen[f"waits: {reason}"] += count
        for outcome, count in self.tally.outcomes.items():
            self.seen[f"lookup: {outcome}"] += count
