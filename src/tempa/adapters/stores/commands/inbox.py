"""The inbox: what was heard of payments is on disk before anybody is told so, and looked up afterwards."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.anomalies import note_all
from tempa.adapters.stores.commands.batches import Batches
from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.sql import encode
from tempa.adapters.stores.sql.settlement_rows import cursor_from, cursor_row, inbox_entry_from, time_from
from tempa.core.clock import from_ms, to_ms
from tempa.core.crash import crash_point
from tempa.core.ids import new_id
from tempa.core.work import INBOX
from tempa.settlement.anomalies import NewAnomaly, lookup_key, of_entry
from tempa.settlement.inbox import InboxClaim, InboxState, TakenIn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.settlement.inbox import Cursor, InboxEnding, InboxEntry, Incoming


_BEFORE_ALL = 0  # when it is due what is urgent: before everything that waits


@dataclass(frozen=True, slots=True)
class _Call:
    """An incoming call, and what it is kept under if something of it is new."""

    id: str
    incoming: Incoming

    @property
    def nonce(self) -> tuple[str, str] | None:
        return None if self.incoming.nonce is None else (self.incoming.source, self.incoming.nonce)


class InboxPart(Access):
    """`SettlementStore`: the inbox. An adapter that closes waits for `_calls` first."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: Batches[_Call, TakenIn] = Batches(self._take_in_all, lambda call: call.nonce or call.id)

    async def take_in(self, incoming: Incoming) -> TakenIn:
        """Keep what is new of it; durable when it returns. Each (source, signature) is taken in once."""
        taken = await self._calls.do(_Call(new_id("call"), incoming))
        crash_point("take_in.committed")
        return taken

    async def _take_in_all(self, batch: Sequence[_Call]) -> list[TakenIn]:
        return await self._write(take_in_all, batch)

    async def claim_inbox(self, limit: int, lease_seconds: float) -> list[InboxClaim]:
        """Up to `limit` signatures that are due. They are due again when the lease is over."""
        return await self._write(_claim, limit, lease_seconds)

    async def settle_inbox(self, endings: Sequence[InboxEnding]) -> None:
        """What lookups came to where nothing is credited; of all sources that told of a signature."""
        await self._write(_settle, endings)

    async def free_inbox(self) -> int:
        """Lookups of an instance that is dead are due again; how many entries."""
        return await self._write(_free)

    async def next_lookup(self) -> datetime | None:
        """When the next is due; None: nothing waits."""
        return await self._read(_next_lookup)

    async def pending_lookups(self) -> tuple[int, datetime | None]:
        """How many entries wait, and when the oldest of them came."""
        return await self._read(_pending)

    async def inbox_of(self, signature: str) -> list[InboxEntry]:
        """A signature as each source told of it."""
        return await self._read(_of, signature)

    async def forget_nonces(self, before: datetime, limit: int) -> int:
        """Drop up to `limit` nonces used before then; how many there were."""
        return await self._write(_forget_nonces, to_ms(before), limit)

    async def missed_lookups(self, limit: int) -> list[str]:
        """Signatures that no node showed yet and that are not due, the furthest away first."""
        return await self._read(_missed, limit)

    async def recall_lookups(self, signatures: Sequence[str]) -> int:
        """Those of them that no node showed are due at once; how many entries."""
        return await self._write(_recall, signatures)

    async def is_looking_up(self, source: str, since: datetime, until: datetime) -> bool:
        """Whether anything waits that this source told of between the two, both included."""
        return await self._read(_is_looking_up, source, since, until)

    async def cursor(self, address: str) -> Cursor | None:
        """How far an account's history was read."""
        return await self._read(_cursor, address)

    async def advance_cursor(self, address: str, cursor: Cursor) -> None:
        """An account's history was read so far. It never goes back."""
        await self._write(_advance, address, cursor)
        crash_point("cursor.committed")


def take_in_all(batch: Sequence[_Call]) -> Flow[Done[list[TakenIn]]]:
    """A call whose nonce was used before is heard as well: what it tells of may be a payment all the same."""
    moment = yield MOMENT
    now = moment.now
    used = [{"source": call.nonce[0], "nonce": call.nonce[1], "seen_at": now} for call in batch if call.nonce]
    fresh = {(row["source"], row["nonce"]) for row in (yield ASK.insert_nonces(used))}
    heard = {call.id for call in batch if call.nonce is None or call.nonce in fresh}
    rows = yield ASK.insert_signatures([row for call in batch for row in _signature_rows(call, now)])
    accepted = Counter(row["call_id"] for row in rows)
    kept = [call for call in batch if accepted[call.id] or (call.incoming.rejected and call.id in heard)]
    yield ASK.insert_calls([_call_row(call, now) for call in kept])
    yield from note_all([anomaly for call in kept for anomaly in _rejections(call)], now)
    answers = [_taken_in(call, accepted[call.id], is_replay=call.id not in heard) for call in batch]
    crash_point("take_in.in_commit")
    return Done(answers, (INBOX,) if accepted else ())


def _taken_in(call: _Call, accepted: int, *, is_replay: bool) -> TakenIn:
    return TakenIn(accepted, len(call.incoming.signatures) - accepted, is_replay)


def _signature_rows(call: _Call, now: int) -> Iterator[dict[str, Any]]:
    due = _BEFORE_ALL if call.incoming.is_urgent else now
    for signature in call.incoming.signatures:
        row = {"source": call.incoming.source, "signature": signature, "call_id": call.id}
        yield {**row, "received_at": now, "next_at": due}


def _call_row(call: _Call, now: int) -> dict[str, Any]:
    return {"id": call.id, "source": call.incoming.source, "raw": call.incoming.raw, "received_at": now}


def _rejections(call: _Call) -> Iterator[NewAnomaly]:
    for rejected in call.incoming.rejected:
        yield of_entry(call.id, call.incoming.source, rejected)


def _claim(limit: int, lease_seconds: float) -> Flow[Done[list[InboxClaim]]]:
    moment = yield MOMENT
    until = moment.now + round(lease_seconds * 1000)
    rows = yield ASK.claim_inbox(now=moment.now, lease_until=until, limit=limit)
    if rows:
        crash_point("lookup.claim_in_commit")
    return Done(list(_claims(rows)))


def _claims(rows: Iterable[Any]) -> Iterator[InboxClaim]:
    """One a signature, whoever told of it; the first that did first."""
    by_signature: dict[str, list[Any]] = {}
    for row in sorted(rows, key=lambda row: row["received_at"]):
        by_signature.setdefault(row["signature"], []).append(row)
    for signature, told in by_signature.items():
        yield InboxClaim(
            signature=signature,
            received_at=from_ms(told[0]["received_at"]),
            attempts=max(row["attempts"] for row in told),
        )


def _settle(endings: Sequence[InboxEnding]) -> Flow[Done[None]]:
    """A lookup that was overtaken by another one's credit leaves nothing behind: nobody would clear it."""
    moment = yield MOMENT
    yield ASK.settle_inbox([_ending_row(ending, moment.now) for ending in endings])
    rows = yield ASK.inbox_states(signatures=encode([ending.signature for ending in endings]))
    standing = {(row["signature"], row["state"]) for row in rows}
    shown = [one for one in endings if one.is_shown and (one.signature, one.state) in standing]
    yield from note_all([_shown(ending) for ending in shown], moment.now)
    crash_point("lookup.settle_in_commit")
    return Done(None)


def _ending_row(ending: InboxEnding, now: int) -> dict[str, Any]:
    pending = ending.state is InboxState.PENDING
    assert pending or ending.state is InboxState.TERMINAL, "credits are posted"
    return {
        "signature": ending.signature,
        "state": ending.state,
        "reason": ending.reason,
        "spent": int(ending.spends_attempt),
        "next_at": now + round(ending.delay_seconds * 1000) if pending else None,
        "settled_at": None if pending else now,
    }


def _shown(ending: InboxEnding) -> NewAnomaly:
    return NewAnomaly(
        key=lookup_key(ending.signature),
        reason=ending.reason,
        signature=ending.signature,
        detail=ending.detail,
    )


def _free() -> Flow[Done[int]]:
    moment = yield MOMENT
    freed = yield ASK.free_inbox(now=moment.now)
    return Done(freed)


def _next_lookup() -> Flow[datetime | None]:
    return time_from((yield ASK.next_lookup()))


def _pending() -> Flow[tuple[int, datetime | None]]:
    row = yield ASK.pending_lookups()
    return row["entries"], time_from(row["oldest"])


def _of(signature: str) -> Flow[list[InboxEntry]]:
    rows = yield ASK.inbox_of(signature=signature)
    return [inbox_entry_from(row) for row in rows]


def _forget_nonces(before: int, limit: int) -> Flow[Done[int]]:
    forgotten = yield ASK.forget_nonces(before=before, limit=limit)
    return Done(forgotten)


def _missed(limit: int) -> Flow[list[str]]:
    moment = yield MOMENT
    rows = yield ASK.missed_lookups(now=moment.now, limit=limit)
    return list(dict.fromkeys(row["signature"] for row in rows))  # several sources tell of the same


def _recall(signatures: Sequence[str]) -> Flow[Done[int]]:
    moment = yield MOMENT
    recalled = yield ASK.recall_lookups(signatures=encode(list(signatures)), now=moment.now)
    return Done(recalled, (INBOX,) if recalled else ())


def _is_looking_up(source: str, since: datetime, until: datetime) -> Flow[bool]:
    waiting = yield ASK.lookups_between(source=source, since=to_ms(since), until=to_ms(until))
    return bool(waiting)


def _cursor(address: str) -> Flow[Cursor | None]:
    row = yield ASK.cursor_of(address=address)
    return None if row is None else cursor_from(row)


def _advance(address: str, cursor: Cursor) -> Flow[Done[None]]:
    moment = yield MOMENT
    yield ASK.advance_cursor(address=address, now=moment.now, **cursor_row(cursor))
    crash_point("cursor.in_commit")
    return Done(None)
