"""GPU instances, and rentals that come to their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.commands.notices import tell
from tempa.adapters.stores.sql.settlement_rows import act_from, instance_from, prices_text, rental_from
from tempa.core.crash import crash_point
from tempa.core.work import EVENTS
from tempa.settlement.events import EXPIRED, EXPIRING, of_rental
from tempa.settlement.rentals import ActKind, Expired
from tempa.webhooks.notices import Notice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.settlement.quotes import PriceOffer
    from tempa.settlement.rentals import GpuInstance, InstanceAct, NewInstance


class RentalsPart(Access):
    """`SettlementStore`: instances and rentals. What prolongs a rental is posted (ledger.py)."""

    async def add_instance(self, new: NewInstance) -> GpuInstance:
        """An instance to be rented out."""
        return await self._write(_add, new)

    async def change_prices(self, gpu_instance_id: str, prices: Sequence[PriceOffer]) -> bool:
        """What it costs from now on; quotes that were made keep theirs. False: there is none."""
        return await self._write(_change_prices, gpu_instance_id, prices)

    async def instance(self, gpu_instance_id: str) -> GpuInstance | None:
        """One."""
        return await self._read(_one, gpu_instance_id)

    async def instances(self, limit: int, after: str | None) -> list[GpuInstance]:
        """Oldest first, from the one behind `after`."""
        return await self._read(_list, limit, after)

    async def suspend_instance(self, gpu_instance_id: str) -> bool:
        """Let nobody use it; its rental's time stands still. False: there is none, or it is suspended."""
        return await self._write(_suspend, gpu_instance_id)

    async def resume_instance(self, gpu_instance_id: str) -> bool:
        """Let it be used again, with the time that was left. False: there is none, or it is not suspended."""
        return await self._write(_resume, gpu_instance_id)

    async def instance_acts(self, after: int, limit: int) -> list[InstanceAct]:
        """What operators did to instances, in order, behind number `after`."""
        return await self._read(_acts, after, limit)

    async def expire_rentals(self, warn_seconds: float, grace_seconds: float, limit: int) -> Expired:
        """Warn of what ends within `warn_seconds`, let into grace what has ended, end what is past that."""
        done = await self._write(_expire, round(warn_seconds * 1000), round(grace_seconds * 1000), limit)
        if done.warned or done.ended:
            crash_point("rentals.expired")
        return done


def _add(new: NewInstance) -> Flow[Done[GpuInstance]]:
    moment = yield MOMENT
    prices = prices_text(new.prices)
    yield ASK.insert_instance(id=new.id, name=new.name, prices=prices, now=moment.now)
    yield ASK.note_act(gpu_instance_id=new.id, kind=ActKind.ADDED, prices=prices, now=moment.now)
    return Done(instance_from((yield ASK.instance(gpu_instance_id=new.id))))


def _change_prices(gpu_instance_id: str, prices: Sequence[PriceOffer]) -> Flow[Done[bool]]:
    """Behind the ledger's lock: each late payment is posted wholly before, or wholly after."""
    yield ASK.lock_ledger()
    moment = yield MOMENT
    text = prices_text(prices)
    changed = yield ASK.change_prices(gpu_instance_id=gpu_instance_id, prices=text)
    if changed:
        yield ASK.note_act(gpu_instance_id=gpu_instance_id, kind=ActKind.PRICED, prices=text, now=moment.now)
    return Done(changed > 0)


def _one(gpu_instance_id: str) -> Flow[GpuInstance | None]:
    row = yield ASK.instance(gpu_instance_id=gpu_instance_id)
    return None if row is None else instance_from(row)


def _list(limit: int, after: str | None) -> Flow[list[GpuInstance]]:
    rows = yield ASK.list_instances(limit=limit, after=after)
    return [instance_from(row) for row in rows]


def _acts(after: int, limit: int) -> Flow[list[InstanceAct]]:
    return [act_from(row) for row in (yield ASK.acts_after(after=after, limit=limit))]


def _suspend(gpu_instance_id: str) -> Flow[Done[bool]]:
    yield ASK.lock_ledger()  # a payment that is being posted is posted wholly before, or finds it suspended
    moment = yield MOMENT
    suspended = yield ASK.suspend_instance(gpu_instance_id=gpu_instance_id, now=moment.now)
    if suspended:
        yield ASK.note_act(
            gpu_instance_id=gpu_instance_id, kind=ActKind.SUSPENDED, prices=None, now=moment.now
        )
    return Done(suspended > 0)


def _resume(gpu_instance_id: str) -> Flow[Done[bool]]:
    yield ASK.lock_ledger()
    moment = yield MOMENT
    yield ASK.shift_rental(gpu_instance_id=gpu_instance_id, now=moment.now)
    resumed = yield ASK.resume_instance(gpu_instance_id=gpu_instance_id)
    if resumed:
        yield ASK.note_act(gpu_instance_id=gpu_instance_id, kind=ActKind.RESUMED, prices=None, now=moment.now)
    return Done(resumed > 0)


def _expire(warn_ms: int, grace_ms: int, limit: int) -> Flow[Done[Expired]]:
    """Behind the ledger's lock: a payment prolongs a rental before its end, or begins another behind it."""
    yield ASK.lock_ledger()
    moment = yield MOMENT
    now = moment.now
    warned = yield ASK.warn_rentals(soon=now + warn_ms, limit=limit)
    in_grace = yield ASK.grace_rentals(now=now, limit=limit)
    ended = yield ASK.end_rentals(before=now - grace_ms, now=now, limit=limit)
    told = [*_notices(EXPIRING, warned), *_notices(EXPIRED, ended)]
    yield from tell(told, now)
    if told:
        crash_point("rentals.expire_in_commit")
    return Done(Expired(len(warned), in_grace, len(ended)), (EVENTS,) if told else ())


def _notices(name: str, rows: Sequence[Any]) -> list[tuple[str, Notice]]:
    rentals = [rental_from(row, row["gpu_instance_id"]) for row in rows]
    return [(rental.account, Notice(name, of_rental(rental))) for rental in rentals]
