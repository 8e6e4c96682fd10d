"""Providers' calls: each is judged, and on disk before it is answered. What is wrong is kept for people.

A call only tells that there may be something to look up on the chain, so none has to be believed. It must
not be lost, though: providers ask for an answer within a second, and give up after a few.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tempa.core.canonical import read_json
from tempa.core.errors import Refusal, StoreUnavailable
from tempa.settlement.anomalies import NewAnomaly
from tempa.settlement.inbox import Incoming
from tempa.settlement.ingress import NotAuthentic
from tempa.settlement.samples import SAMPLE_BYTES, Samples

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.core.clock import Clock
    from tempa.core.metrics import Meter
    from tempa.settlement.ingress import Call, Heard, Source
    from tempa.settlement.ports import Guard, SettlementStore

_UNREADABLE = "call_unreadable"
_TOO_LARGE = "call_too_large"


class Taken(NamedTuple):
    """What a call came to: signatures that are new, those that were known, and entries that held none."""

    accepted: int
    duplicates: int
    rejected: int


@dataclass(frozen=True, slots=True)
class _Word:
    """A call that may be believed, and what it says."""

    source: Source
    raw: bytes
    nonce: str | None
    heard: Heard


class Calls:
    """Takes providers' calls in.

    `secrets`: by source, those in force, newest first; a source without any takes no calls.
    """

    def __init__(
        self,
        *,
        store: SettlementStore,
        clock: Clock,
        meter: Meter,
        sources: Mapping[str, Source],
        secrets: Mapping[str, tuple[str, ...]],
        guard: Guard | None = None,
    ) -> None:
        self._store, self._meter, self._guard = store, meter, guard
        self._sources = {name: source for name, source in sources.items() if secrets.get(name)}
        self._secrets = secrets
        self._samples = Samples(store, clock)

    def source(self, name: str) -> Source | None:
        """One that takes calls here."""
        return self._sources.get(name)

    async def take_in(self, source: Source, call: Call) -> Taken:
        """Durable when it returns.

        Raises `NotAuthentic`; `Refusal` (`unreadable-json`), the call being kept as an anomaly all the same;
        `StoreUnavailable`.
        """
        try:
            return await self._keep(await self._understood(source, call))
        except StoreUnavailable:
            self._count(source, "unavailable")
            raise

    async def refused(self, source: Source, *, too_large: bool, detail: str, sample: bytes) -> None:
        """A call was refused before it could be judged: it may have told of a payment all the same."""
        reason = _TOO_LARGE if too_large else _UNREADABLE
        self._count(source, "too_large" if too_large else "unreadable")
        await self._sample(source, reason, detail, sample, key=f"{reason}:{source.name}")

    async def _understood(self, source: Source, call: Call) -> _Word:
        """What a call says. Its document ends here: keeping many until the disk is done halved the rate."""
        nonce = await self._authentic(source, call)
        return _Word(source, call.body, nonce, source.hear(await self._document(source, call)))

    async def _authentic(self, source: Source, call: Call) -> str | None:
        """The call's nonce, where its source has them."""
        try:
            return source.check(call, self._secrets[source.name])
        except NotAuthentic as forged:
            self._count(source, "forged")
            key = f"forged:{source.name}:{forged.reason}"
            await self._sample(source, "call_forged", forged.reason, call.body, key=key)
            raise

    async def _document(self, source: Source, call: Call) -> Any:
        """A memo may hold any character: of the text nothing is kept but signatures."""
        try:
            return read_json(call.body, is_kept=False)
        except Refusal as refusal:
            self._count(source, "unreadable")
            digest = hashlib.sha256(call.body).hexdigest()
            await self._store.note_anomaly(
                NewAnomaly(
                    key=f"unreadable:{source.name}:{digest}",
                    reason=_UNREADABLE,
                    source=source.name,
                    detail=refusal.detail,
                    raw=call.body,
                )
            )
            raise

    async def _keep(self, word: _Word) -> Taken:
        known = await self._known(word)
        fresh = tuple(one for one in word.heard.signatures if one not in known)
        skipped = len(word.heard.signatures) - len(fresh)
        if skipped and not fresh and not word.heard.rejected:
            return self._told(word, Taken(0, skipped, 0))
        incoming = Incoming(
            source=word.source.name,
            raw=word.raw,
            signatures=fresh,
            rejected=word.heard.rejected,
            nonce=word.nonce,
        )
        taken = await self._store.take_in(incoming)
        # Only now: were they known before they are on disk, and that failed, a next try would be passed over.
        await self._remember(word, fresh)
        told = Taken(taken.accepted, taken.duplicates + skipped, len(word.heard.rejected))
        if taken.is_replay:
            return await self._replayed(word, told)
        return self._told(word, told)

    async def _replayed(self, word: _Word, taken: Taken) -> Taken:
        """Taken all the same: it is told so who did not hear that the first call was. That is no anomaly."""
        self._count(word.source, "replayed")
        if taken.accepted or word.source.has_single_use_nonces:
            detail = f"The nonce {word.nonce} was used before."
            key = f"replayed:{word.source.name}"
            await self._sample(word.source, "call_replayed", detail, word.raw, key=key)
        return taken

    def _told(self, word: _Word, taken: Taken) -> Taken:
        outcome = "accepted" if taken.accepted else "duplicate" if taken.duplicates else "rejected"
        self._count(word.source, outcome)
        return taken

    async def _known(self, word: _Word) -> frozenset[str]:
        """Signatures that need not be stored again. A call whose nonce was seen is the store's to judge."""
        if self._guard is None or not word.heard.signatures:
            return frozenset()
        nonce = _nonce_word(word)
        known = await self._guard.known(word.source.name, [*word.heard.signatures, *nonce])
        return known if known.isdisjoint(nonce) else frozenset()

    async def _remember(self, word: _Word, fresh: tuple[str, ...]) -> None:
        words = [*fresh, *_nonce_word(word)]
        if self._guard is not None and words:
            await self._guard.remember(word.source.name, words)

    async def _sample(self, source: Source, reason: str, detail: str, raw: bytes, *, key: str) -> None:
        new = NewAnomaly(key=key, reason=reason, source=source.name, detail=detail, raw=raw[:SAMPLE_BYTES])
        await self._samples.note(new)

    def _count(self, source: Source, outcome: str) -> None:
        self._meter.count("tempa_settlement_calls_total", source=source.name, outcome=outcome)


def _nonce_word(word: _Word) -> tuple[str, ...]:
    """As the guard knows it: told apart from signatures by its colon."""
    return () if word.nonce is None else (f"nonce:{word.nonce}",)
