"""What a person has to look at: noted with what has found it, cleared with what settles it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.sql.settlement_rows import anomalies_from, anomaly_from, anomaly_row
from tempa.core.ids import new_id
from tempa.settlement.anomalies import RAW_SHOWN_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.settlement.anomalies import Anomaly, NewAnomaly


class AnomaliesPart(Access):
    """`SettlementStore`: looking at anomalies. What is done about them is in allocations.py."""

    async def note_anomaly(self, new: NewAnomaly) -> None:
        """Note one, or count it again."""
        await self._write(_note, new)

    async def clear_anomaly(self, key: str, resolution: str) -> bool:
        """What it was noted for is over. False if it was not open."""
        return await self._write(_clear, key, resolution)

    async def anomalies(self, limit: int, before: str | None) -> list[Anomaly]:
        """Those that are open, newest first, from the one before `before`."""
        return await self._read(_open, limit, before)

    async def anomaly(self, anomaly_id: str) -> Anomaly | None:
        """One, with what came as far as it was kept."""
        return await self._read(find, anomaly_id)

    async def anomalies_of(self, signature: str) -> list[Anomaly]:
        """All that was ever noted of a transaction."""
        return await self._read(_of, signature)

    async def anomaly_counts(self) -> dict[str, int]:
        """How many are open, by reason."""
        return await self._read(_counts)


def note_all(anomalies: Iterable[NewAnomaly], now: int) -> Flow[None]:
    """One by one, in one order: they are few, and two transactions may note the same."""
    for new in sorted(anomalies, key=lambda new: new.key):
        yield ASK.note_anomaly(id=new_id("ano"), now=now, **anomaly_row(new))


def find(anomaly_id: str) -> Flow[Anomaly | None]:
    """One, resolved or not."""
    row = yield ASK.anomaly(anomaly_id=anomaly_id)
    return None if row is None else anomaly_from(row)


def _note(new: NewAnomaly) -> Flow[Done[None]]:
    moment = yield MOMENT
    yield from note_all([new], moment.now)
    return Done(None)


def _clear(key: str, resolution: str) -> Flow[Done[bool]]:
    moment = yield MOMENT
    cleared = yield ASK.clear_anomaly(key=key, resolution=resolution, now=moment.now)
    return Done(cleared > 0)


def _open(limit: int, before: str | None) -> Flow[list[Anomaly]]:
    rows = yield ASK.open_anomalies(limit=limit, before=before, raw_bytes=RAW_SHOWN_BYTES)
    return anomalies_from(rows)


def _of(signature: str) -> Flow[list[Anomaly]]:
    return anomalies_from((yield ASK.anomalies_of(signature=signature)))


def _counts() -> Flow[dict[str, int]]:
    rows = yield ASK.anomaly_counts()
    return {row["reason"]: row["entries"] for row in rows}
