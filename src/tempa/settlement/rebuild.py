"""The ledger built anew from the chain, the quotes and what operators did, in a second store that is empty.

Each transaction is looked up on the chain again, judged and posted by the rules of this release; nothing
that the ledger says of it is taken over. What is taken from the ledger is what no chain can tell: quotes,
instances and their prices, suspensions, what a person gave to whom, and, unless told otherwise, in which
order and when payments were posted. That order decides only who comes first where two want one instance, or
where it was suspended or its rental over in between. Receipts, and the seconds of a quote that nobody else
stood in the way of, do not depend on it: late payments are credited at the price of their own time.

Three things have no history and are taken as they are now: what counts as dust, the treasury's accounts,
and how long the grace is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from tempa.core.clock import from_ms, to_ms
from tempa.settlement.comparison import Comparison, all_quotes, compare
from tempa.settlement.post import Proven
from tempa.settlement.quorum import Held
from tempa.settlement.quotes import Closed
from tempa.settlement.rentals import ActKind, NewInstance
from tempa.settlement.replay import Replay

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterable,
        AsyncIterator,
        Callable,
        Coroutine,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )
    from datetime import datetime
    from typing import Any

    from tempa.settlement.journal import JournalEntry
    from tempa.settlement.model import Outflow, Receipt, Verdict
    from tempa.settlement.ports import SettlementStore, Sighting
    from tempa.settlement.post import Terms
    from tempa.settlement.quorum import Agreed
    from tempa.settlement.rentals import InstanceAct

    _Lookups = dict[str, asyncio.Task[Agreed | Held]]

LOOKUPS_AT_ONCE = 16
_PAGE = 1000
_RENTALS = 1000
_OF_THE_CHAIN = {"receipt", "share", "outflow"}  # what entries of the journal tell of; the others are acts


class Order(StrEnum):
    """In which payments are posted again."""

    POSTED = "posted"  # as the journal says, at the times it says
    CHAIN = "chain"  # by slot, in their blocks' time: where the journal's times are lost, or not believed


class ReplayClock:
    """What the second store goes by: it stands at the time of what is being done again."""

    def __init__(self) -> None:
        self._now_ms = 0

    def now(self) -> datetime:
        """The time of the step under way."""
        return from_ms(self._now_ms)

    def monotonic(self) -> float:
        """The same, in seconds."""
        return self._now_ms / 1000

    async def sleep(self, seconds: float) -> None:
        """Not at all."""

    def at_least(self, at_ms: int) -> bool:
        """Go on to then; False: it is later already."""
        moved = at_ms > self._now_ms
        self._now_ms = max(self._now_ms, at_ms)
        return moved


class Progress(NamedTuple):
    """How far it is: transactions that were found, and those that were posted again."""

    found: int
    posted: int


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What came of it.

    `unchecked`: transactions that no node, or too few, could tell of, with the code of the reason. `undone`:
    acts that could not be done again, in words.
    """

    comparison: Comparison
    transactions: int
    unchecked: Mapping[str, str]
    undone: tuple[str, ...]

    @property
    def is_identical(self) -> bool:
        """Whether the ledger is what chain, quotes and acts make of it."""
        return not (self.comparison.difference_count or self.unchecked or self.undone)


class _Found(NamedTuple):
    """Where a transaction was found. `at_ms`: the end of its block's second; 0: the chain has no time."""

    slot: int
    at_ms: int


class _Step(NamedTuple):
    """Something to do again, at its time: a posting, what one act wrote, or an operator's act."""

    at_ms: int
    signatures: Sequence[str] = ()
    entries: tuple[JournalEntry, ...] = ()
    act: InstanceAct | None = None


@dataclass(kw_only=True)
class Rebuild:
    """Builds `scratch`, which goes by `clock`, out of what `source` and the chain have; changes no `source`.

    - `sightings`: everything in the history of the treasury's accounts, in any order, also twice.
    - `check`: what nodes agree on about a transaction: `Quorum.check`, or what waits and asks again.
    - `terms`, `grace_seconds`: the operator's.
    - `told`: called now and then.

    Memory: about 250 bytes a transaction.
    """

    source: SettlementStore
    scratch: SettlementStore
    clock: ReplayClock
    sightings: AsyncIterable[Sighting]
    check: Callable[[str], Coroutine[Any, Any, Agreed | Held]]
    terms: Terms
    grace_seconds: float
    order: Order = Order.POSTED
    lookups_at_once: int = LOOKUPS_AT_ONCE
    told: Callable[[Progress], None] = lambda _: None
    _found: dict[str, _Found] = field(default_factory=dict)  # by signature
    _asked: set[str] = field(default_factory=set)
    _posted: int = 0
    _unchecked: dict[str, str] = field(default_factory=dict)
    _undone: list[str] = field(default_factory=list)

    async def run(self) -> Rebuilt:
        """All of it. Raises `StoreUnavailable`, and what `sightings` or `check` raise."""
        async for sighting in self.sightings:
            at_ms = 0 if sighting.block_time is None else sighting.block_time * 1000 + 999
            self._found[sighting.signature] = _Found(sighting.slot, at_ms)
        acts = [act async for act in _all_acts(self.source)]
        await self._copy(acts)
        rest = [act for act in acts if act.kind is not ActKind.ADDED]
        steps = self._as_posted(rest) if self.order is Order.POSTED else self._as_on_chain(rest)
        await self._do_all(steps)
        comparison = await compare(self.source, self.scratch)
        return Rebuilt(comparison, self._posted, dict(self._unchecked), tuple(self._undone))

    async def _copy(self, acts: Iterable[InstanceAct]) -> None:
        """Instances, each at its first price and time; then all quotes, while nobody rents anything."""
        for act in acts:
            if act.kind is ActKind.ADDED:
                self.clock.at_least(to_ms(act.at))
                instance = await self.source.instance(act.gpu_instance_id)
                assert instance is not None, "an act is about an instance"
                new = NewInstance(id=instance.id, name=instance.name, prices=act.prices or ())
                await self.scratch.add_instance(new)
        async for quote in all_quotes(self.source):
            opened = await self.scratch.open_quote(quote.offer)
            if isinstance(opened, Closed):
                self._undone.append(f"the quote {quote.offer.id} could not be made: {opened.reason}")

    # The order of things

    async def _as_posted(self, acts: list[InstanceAct]) -> AsyncIterator[_Step]:
        """As the journal has it, acts behind the entries they came behind; last, what it does not have."""
        waiting = deque(acts)
        known: set[str] = set()
        async for entries in _entries_by_act(self.source):
            first = entries[0]
            while waiting and waiting[0].after_entry < first.number:
                yield _Step(to_ms(waiting[0].at), act=waiting.popleft())
            if first.draft.kind in _OF_THE_CHAIN:
                signature = str(first.draft.detail["signature"])
                known.add(signature)
                yield _Step(first.draft.at_ms, (signature,))
            else:
                yield _Step(first.draft.at_ms, entries=tuple(entries))
        for act in waiting:
            yield _Step(to_ms(act.at), act=act)
        for signatures in self._by_slot(self._found.keys() - known):
            yield _Step(0, signatures)

    async def _as_on_chain(self, acts: list[InstanceAct]) -> AsyncIterator[_Step]:
        """By slot. What the journal tells of and no history does, is asked about all the same."""
        others = [_Step(to_ms(act.at), act=act) for act in acts]
        async for entries in _entries_by_act(self.source):
            draft = entries[0].draft
            if draft.kind in _OF_THE_CHAIN:
                unlisted = _Found(int(draft.detail["slot"]), draft.at_ms)
                self._found.setdefault(str(draft.detail["signature"]), unlisted)
            else:  # behind the payment that it is about, whatever the clocks of chain and server say
                paid = self._found.get(str(draft.detail["signature"]), _Found(0, 0))
                others.append(_Step(max(draft.at_ms, paid.at_ms), entries=tuple(entries)))
        waiting = deque(sorted(others, key=attrgetter("at_ms")))
        for signatures in self._by_slot(self._found):
            at_ms = self._found[signatures[0]].at_ms
            while waiting and waiting[0].at_ms < at_ms:
                yield waiting.popleft()
            yield _Step(at_ms, signatures)
        for step in waiting:
            yield step

    def _by_slot(self, signatures: Iterable[str]) -> Iterator[list[str]]:
        """Those of one slot together: their places in it are known once they were looked up."""

        def slot(signature: str) -> int:
            return self._found[signature].slot

        for _, together in groupby(sorted(signatures, key=slot), key=slot):
            yield sorted(together)

    # Doing it again

    async def _do_all(self, steps: AsyncIterator[_Step]) -> None:
        """In order, while the transactions of the steps to come are looked up."""
        window: deque[tuple[_Step, _Lookups]] = deque()
        under_way = 0
        try:
            async for step in steps:
                window.append((step, self._look_up(step)))
                under_way += len(window[-1][1])
                while under_way >= self.lookups_at_once:
                    await self._do(*window[0])
                    under_way -= len(window.popleft()[1])
            while window:
                await self._do(*window[0])
                window.popleft()
        finally:
            for _, lookups in window:
                for lookup in lookups.values():
                    lookup.cancel()

    def _look_up(self, step: _Step) -> _Lookups:
        """Each transaction once, whatever the journal has of it."""
        fresh = [each for each in step.signatures if each not in self._asked]
        self._asked.update(fresh)
        return {each: asyncio.ensure_future(self.check(each)) for each in fresh}

    async def _do(self, step: _Step, lookups: _Lookups) -> None:
        replay = Replay(self.source, self.scratch, self.terms, self._undone)
        found = {signature: await lookup for signature, lookup in lookups.items()}
        if self.clock.at_least(step.at_ms):
            await self.scratch.expire_rentals(0, self.grace_seconds, _RENTALS)
        if step.act is not None:
            await replay.act(step.act)
        if step.entries:
            await replay.entries(step.entries)
        self._unchecked |= {name: told.reason for name, told in found.items() if isinstance(told, Held)}
        verdicts = [told.verdict for told in found.values() if not isinstance(told, Held)]
        for verdict in sorted(verdicts, key=_place):
            await self.scratch.post_credits(Proven(verdict=verdict, terms=self.terms))
            self._posted += 1
        self.told(Progress(len(self._found), self._posted))


def _place(verdict: Verdict) -> tuple[int, int, str]:
    """As postings of one batch are ordered."""
    moved: list[Receipt | Outflow] = [*verdict.receipts, *verdict.outflows]
    indexes = (each.index for each in moved if each.index is not None)
    return verdict.slot or 0, next(indexes, -1), verdict.signature


async def _all_acts(store: SettlementStore) -> AsyncIterator[InstanceAct]:
    after = 0
    while page := await store.instance_acts(after, _PAGE):
        for act in page:
            yield act
        after = page[-1].number


async def _entries_by_act(store: SettlementStore) -> AsyncIterator[list[JournalEntry]]:
    """The journal in order; what one act gave to several quotes comes together."""
    together: list[JournalEntry] = []
    after = 0
    while page := await store.journal(after, _PAGE):
        for entry in page:
            if together and _act_of(together[0]) != _act_of(entry):
                yield together
                together = []
            together.append(entry)
        after = page[-1].number
    if together:
        yield together


def _act_of(entry: JournalEntry) -> str:
    """Of an allocation, the anomaly whose money it is; each other entry is by itself."""
    draft = entry.draft
    return draft.key.rpartition(":")[0] if draft.kind == "allocation" else draft.key
