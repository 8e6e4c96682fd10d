"""Which endpoints a plan's deliveries go to. A job's URL becomes one when it is met for the first time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.adapters.stores.commands.flow import ASK
from tempa.adapters.stores.sql import encode
from tempa.core.ids import new_id
from tempa.webhooks.room import host_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.webhooks.model import NewDelivery, Planned

Goal = str | tuple[str, str]  # a registered endpoint's id, or an account and a URL of its jobs


def goal_of(wanted: NewDelivery) -> Goal:
    """What a delivery is to go to."""
    if wanted.endpoint_id is not None:
        return wanted.endpoint_id
    assert wanted.url is not None, "a delivery goes to an endpoint or to a URL"
    return wanted.message.account, wanted.url


def targets(planned: Iterable[Planned], now: int) -> Flow[dict[Goal, int]]:
    """The endpoints' numbers, all locked; one that was removed is not among them.

    The locks first, in the order in which all take them: who removes an endpoint then either finds its
    new deliveries or is found to have removed it.
    """
    # In their order, which a set would lose: new endpoints are numbered by it, and take turns so.
    goals = dict.fromkeys(goal_of(wanted) for plan in planned for wanted in plan.deliveries)
    numbers: dict[Goal, int] = {}
    for goal in goals:
        if isinstance(goal, tuple):
            numbers[goal] = yield from _of_url(*goal, now)
    ids = encode(sorted(goal for goal in goals if isinstance(goal, str)))
    registered = yield ASK.registered_numbers(ids=ids)
    locked = sorted({*numbers.values(), *(row["number"] for row in registered)})
    if locked:
        yield ASK.lock_endpoints(numbers=encode(locked))
    if registered:
        standing = yield ASK.registered_numbers(ids=ids)
        numbers |= {row["id"]: row["number"] for row in standing}
    return numbers


def _of_url(account: str, url: str, now: int) -> Flow[int]:
    number = yield ASK.endpoint_number(account=account, url=url)
    if number is None:
        fresh = {"id": new_id("ep"), "account": account, "url": url, "host": host_of(url), "origin": "job"}
        yield ASK.insert_endpoint(**fresh, now=now)
        number = yield ASK.endpoint_number(account=account, url=url)
    return int(number)
