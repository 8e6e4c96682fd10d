"""Quotes: made, looked at, and followed from the first word of a payment to its finality."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.sql.settlement_rows import quote_from, quote_row
from tempa.core.clock import from_ms, to_ms
from tempa.settlement.quotes import Closed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.settlement.ports import Place
    from tempa.settlement.quotes import NewQuote, Quote, QuoteSighting


_BEHIND_ALL = 2**63 - 1  # quotes of one millisecond


class QuotesPart(Access):
    """`SettlementStore`: quotes."""

    async def open_quote(self, new: NewQuote) -> Quote | Closed:
        """Keep a quote, unless somebody else has the instance, or nobody may."""
        return await self._write(_open, new)

    async def quote(self, account: str, quote_id: str) -> Quote | None:
        """One of the account's."""
        return await self._read(_one, account, quote_id)

    async def quotes(self, account: str, limit: int, before: str | None) -> list[Quote]:
        """The account's, newest first, from the one made before `before`."""
        return await self._read(_list, account, limit, before)

    async def quotes_of(self, account: str, signature: str) -> list[Quote]:
        """The account's whose latest transaction this is."""
        return await self._read(_of_transaction, account, signature)

    async def watched_quotes(
        self, expired_after: datetime, after: Place | None, limit: int
    ) -> tuple[list[Quote], Place | None]:
        """A page of the quotes that end later than `expired_after`, the first to end first."""
        return await self._read(_watched, after or (to_ms(expired_after), _BEHIND_ALL), limit)

    async def note_progress(self, sightings: Sequence[QuoteSighting]) -> int:
        """Payments were heard of, or are final: what their quotes show. How many quotes came further."""
        return await self._write(_note_progress, sightings)


def _open(new: NewQuote) -> Flow[Done[Quote | Closed]]:
    renter = yield ASK.renter(gpu_instance_id=new.gpu_instance_id)
    if renter is None:
        return Done(Closed("unknown"))
    if renter["suspended_at"] is not None:
        return Done(Closed("suspended"))
    if renter["account"] not in (None, new.account):
        return Done(Closed("rented"))
    yield ASK.insert_quote(**quote_row(new))
    row = yield ASK.quote_of_account(account=new.account, quote_id=new.id)
    return Done(quote_from(row))


def _one(account: str, quote_id: str) -> Flow[Quote | None]:
    moment = yield MOMENT
    row = yield ASK.quote_of_account(account=account, quote_id=quote_id)
    return None if row is None else quote_from(row, from_ms(moment.now))


def _list(account: str, limit: int, before: str | None) -> Flow[list[Quote]]:
    moment = yield MOMENT
    rows = yield ASK.list_quotes(account=account, limit=limit, before=before)
    return [quote_from(row, from_ms(moment.now)) for row in rows]


def _of_transaction(account: str, signature: str) -> Flow[list[Quote]]:
    moment = yield MOMENT
    rows = yield ASK.quotes_of_transaction(account=account, signature=signature)
    return [quote_from(row, from_ms(moment.now)) for row in rows]


def _watched(after: Place, limit: int) -> Flow[tuple[list[Quote], Place | None]]:
    moment = yield MOMENT
    at, number = after
    rows = yield ASK.watched_quotes(after_at=at, after_number=number, limit=limit)
    further = (rows[-1]["expires_at"], rows[-1]["number"]) if len(rows) == limit else None
    return [quote_from(row, from_ms(moment.now)) for row in rows], further


def _note_progress(sightings: Sequence[QuoteSighting]) -> Flow[Done[int]]:
    """In one order, so that two that tell of the same quotes never wait for each other."""
    moment = yield MOMENT
    written = 0
    for sighting in sorted(sightings, key=lambda each: (each.name, each.quote_id, each.is_final)):
        note = ASK.note_final if sighting.is_final else ASK.note_seen
        written += yield note(
            name=sighting.name,
            quote_id=sighting.quote_id,
            slot=sighting.slot,
            signature=sighting.signature,
            now=moment.now,
        )
    return Done(written)
