"""The role that sends: every attempt ends on record, whatever breaks on the way."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.retry import RetryPolicy
from tempa.core.signing import hex_signature, new_secret
from tempa.core.work import DELIVERIES
from tempa.testing.clock import ManualClock
from tempa.webhooks.breaker import Change
from tempa.webhooks.deliver import Deliverer, DeliveryRescuer
from tempa.webhooks.keyring import Keyring, SecretUnusable
from tempa.webhooks.model import DeadReason, DeliveryStatus, SealedSecret
from tempa.webhooks.ports import Answer
from tempa.webhooks.verifier import WebhookVerificationError, verify
from tests.unit.webhooks.samples import PATIENCE_SECONDS, FakeSender, FakeStore, NoLinks, Tally, a_claim

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import datetime

    from tempa.core.roles import Role
    from tempa.webhooks.model import ClaimedDelivery

OK = Answer(200, None)


def a_deliverer(store: FakeStore, sender: FakeSender, clock: ManualClock, **changes: Any) -> Deliverer:
    fields: dict[str, Any] = {
        "store": store,
        "sender": sender,
        "wake": InProcessWake(clock),
        "clock": clock,
        "links": NoLinks(),
        "secrets": lambda _claimed, _now: ["whsec_" + "c2VjcmV0" * 4],
        "policy": RetryPolicy(max_retries=2),
        "meter": Tally(),
        "rng": random.Random(7),
        "timeout_seconds": 5.0,
        "body_bytes_max": 10_000,
        "user_agent": "Tempa",
    }
    return Deliverer(**(fields | changes))


class WatchedClock(ManualClock):
    """Notes how long it was asked to sleep."""

    def __init__(self) -> None:
        super().__init__()
        self.sleeps: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        await super().sleep(seconds)


@asynccontextmanager
async def running(role: Role) -> AsyncIterator[asyncio.Event]:
    """The role at work; stopped in the end, and it must come to its end."""
    stop = asyncio.Event()
    task = asyncio.create_task(role.run(stop))
    try:
        yield stop
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await task


async def settled(deliverer: Deliverer, store: FakeStore, count: int = 1) -> None:
    async with running(deliverer):
        await store.wait_for(lambda: len(store.settled) == count)


async def test_a_body_over_the_limit_is_never_sent_and_ends_dead() -> None:
    store, sender = FakeStore(), FakeSender(OK)
    store.due = [a_claim()]

    await settled(a_deliverer(store, sender, ManualClock(), body_bytes_max=100), store)

    ((_, outcome, then),) = store.settled
    assert (then.status, then.reason) == (DeliveryStatus.DEAD, DeadReason.TOO_LARGE)
    assert (outcome.outcome, outcome.error, outcome.http_status) == ("dead", "too_large", None)
    assert sender.sent == []


async def test_a_sender_that_breaks_spends_a_retry_and_is_on_record(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, sender = FakeStore(), FakeSender(KeyError("a slip of ours"))
    store.due = [a_claim(1), a_claim(2, retries_spent=2, attempt=3)]

    await settled(a_deliverer(store, sender, ManualClock()), store, 2)

    ends = {claimed.id: (outcome.error, then.status, then.reason) for claimed, outcome, then in store.settled}
    assert ends == {
        "dlv_1": ("internal", DeliveryStatus.PENDING, None),
        "dlv_2": ("internal", DeliveryStatus.DEAD, DeadReason.EXHAUSTED),
    }
    broken = [record for record in caplog.records if "broke" in record.message]
    assert [(vars(one)["delivery_id"], vars(one)["event_id"]) for one in broken] == [
        ("dlv_1", "evt_1"),
        ("dlv_2", "evt_2"),
    ]
    assert all(record.exc_info for record in broken)


async def test_an_outcome_that_cannot_be_written_is_told_with_its_delivery(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, sender = FakeStore(), FakeSender(OK)
    store.due = [a_claim(1), a_claim(2)]
    store.refuses = {"dlv_1"}

    await settled(a_deliverer(store, sender, ManualClock()), store)

    assert [claimed.id for claimed, _, _ in store.settled] == ["dlv_2"]
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert (vars(record)["delivery_id"], vars(record)["event_id"]) == ("dlv_1", "evt_1")
    assert record.exc_info


async def test_while_a_secret_rotates_each_in_force_verifies_and_one_past_its_overlap_does_not() -> None:
    store, sender, clock = FakeStore(), FakeSender(OK), ManualClock()
    keyring = Keyring(b"k" * 32, lambda account: [new_secret()])
    secrets = [new_secret() for _ in range(3)]
    ends = (None, clock.now() + timedelta(seconds=1), clock.now())
    sealed = [
        SealedSecret(sealed=keyring.seal(secret, "ep_1", "default"), created_at=clock.now(), expires_at=end)
        for secret, end in zip(secrets, ends, strict=True)
    ]
    store.due = [a_claim(endpoint_id="ep_1", secrets=tuple(sealed))]

    await settled(a_deliverer(store, sender, clock, secrets=keyring.in_force), store)

    ((request,), headers) = sender.sent, dict(sender.sent[0].headers)
    now = clock.now().timestamp()
    for secret in secrets[:2]:
        assert verify(request.body, headers, secret, now=now)["id"] == "evt_1"
    with pytest.raises(WebhookVerificationError, match="no_match"):
        verify(request.body, headers, secrets[2], now=now)
    assert headers["X-Webhook-Signature"] == hex_signature(secrets[0], request.body)
    assert headers["X-Webhook-Signature-Previous"] == hex_signature(secrets[1], request.body)


def nothing_in_force(claimed: ClaimedDelivery, now: datetime) -> Sequence[str]:
    raise SecretUnusable("sealed under another master key")


async def test_a_message_that_cannot_be_rendered_or_signed_is_on_record_too() -> None:
    store, sender = FakeStore(), FakeSender(OK)
    store.due = [a_claim()]

    await settled(a_deliverer(store, sender, ManualClock(), secrets=nothing_in_force), store)

    ((_, outcome, then),) = store.settled
    assert (outcome.error, then.status) == ("internal", DeliveryStatus.PENDING)
    assert sender.sent == []


async def test_while_the_store_is_away_an_outcome_waits_and_is_written_once() -> None:
    store, sender, clock = FakeStore(), FakeSender(OK), ManualClock()
    sender.gate.clear()
    store.due = [a_claim()]
    async with running(a_deliverer(store, sender, clock, in_flight_max=1)):
        await sender.under_way(1)
        store.away = 3
        sender.gate.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while store.away:
                await clock.until_asleep()
                clock.advance(0.5)
        clock.advance(0.5)
        await store.wait_for(lambda: len(store.settled) == 1)

    ((_, outcome, then),) = store.settled
    assert (outcome.http_status, then.status) == (200, DeliveryStatus.DELIVERED)
    assert len(sender.sent) == 1


async def test_a_store_that_is_away_when_deliveries_are_claimed_is_asked_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, sender, clock = FakeStore(), FakeSender(OK), ManualClock()
    store.due, store.away = [a_claim()], 1
    async with running(a_deliverer(store, sender, clock)):
        async with asyncio.timeout(PATIENCE_SECONDS):
            await clock.until_asleep()
        assert (store.away, store.settled) == (0, [])
        clock.advance(1.0)
        await store.wait_for(lambda: store.settled)

    ((claimed, outcome, then),) = store.settled
    assert (claimed.id, outcome.http_status, then.status) == ("dlv_1", 200, DeliveryStatus.DELIVERED)
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
        "the store is away; deliveries wait for it"
    ]


@pytest.mark.parametrize(
    ("next_seconds", "sleeps"), [(None, 1.0), (0.25, 0.25), (0.001, 0.001), (1.0, 1.0), (3600.0, 1.0)]
)
async def test_it_sleeps_until_the_next_one_is_due_and_a_second_at_most(
    next_seconds: float | None, sleeps: float
) -> None:
    store, sender, clock = FakeStore(), FakeSender(OK), WatchedClock()
    store.next_seconds = next_seconds
    async with running(a_deliverer(store, sender, clock)):
        async with asyncio.timeout(PATIENCE_SECONDS):
            await clock.until_asleep()
        store.due = [a_claim()]
        clock.advance(sleeps)
        await store.wait_for(lambda: store.settled)

    assert clock.sleeps[0] == sleeps


async def test_a_ring_ends_the_sleep_and_so_does_room_that_is_left() -> None:
    store, sender, clock = FakeStore(), FakeSender(OK), ManualClock()
    sender.gate.clear()
    store.due = [a_claim(1)]
    deliverer = a_deliverer(store, sender, clock)
    async with running(deliverer):
        await sender.under_way(1)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await clock.until_asleep()
        store.due = [a_claim(2)]
        deliverer.wake.ring(DELIVERIES)
        await sender.under_way(1)
        store.due = [a_claim(3)]
        sender.gate.set()  # 1 and 2 end; this store does not ring
        await store.wait_for(lambda: len(store.settled) == 3)

    assert clock.monotonic() == 0


async def test_slots_are_held_by_account_and_host_until_the_outcome_is_written() -> None:
    store, sender = FakeStore(), FakeSender(OK)
    sender.gate.clear()
    store.due = [a_claim(1, url="https://A.example:8443/x"), a_claim(2, url="https://a.example:8443/y")]
    deliverer = a_deliverer(store, sender, ManualClock(), in_flight_max=6)
    async with running(deliverer):
        await sender.under_way(2)
        room = store.rooms[-1]
        held = (room.free, [host for _, _, host in room.full_hosts()])
        sender.gate.set()
        await store.wait_for(lambda: len(store.settled) == 2)

    assert held == (4, ["a.example:8443"] * 3)
    assert room.free == 6


async def test_a_slip_of_ours_goes_to_the_supervisor() -> None:
    store = FakeStore()
    deliverer = a_deliverer(store, FakeSender(OK), ManualClock(), in_flight_max="many")
    with pytest.raises(TypeError):
        await deliverer.run(asyncio.Event())


async def test_stop_lets_what_is_on_its_way_come_to_its_end() -> None:
    store, sender = FakeStore(), FakeSender(OK)
    sender.gate.clear()
    store.due = [a_claim(1), a_claim(2)]
    async with running(a_deliverer(store, sender, ManualClock())) as stop:
        await sender.under_way(2)
        store.due = [a_claim(3)]
        stop.set()
        sender.gate.set()

    assert sorted(claimed.id for claimed, _, _ in store.settled) == ["dlv_1", "dlv_2"]
    assert [one.id for one in store.due] == ["dlv_3"]


async def test_no_more_are_in_flight_than_may_be() -> None:
    store, sender = FakeStore(), FakeSender(OK)
    sender.gate.clear()
    store.due = [a_claim(number) for number in range(1, 6)]
    async with running(a_deliverer(store, sender, ManualClock(), in_flight_max=2)):
        await sender.under_way(2)
        assert (len(sender.sent), len(store.due)) == (2, 3)
        sender.gate.set()
        await store.wait_for(lambda: len(store.settled) == 5)

    assert max(store.limits) == 2
    assert sorted(claimed.id for claimed, _, _ in store.settled) == [f"dlv_{n}" for n in range(1, 6)]
    assert sender.most == 2


async def test_one_claim_takes_a_few_and_the_next_one_follows_at_once() -> None:
    store, sender, clock = FakeStore(), FakeSender(OK), ManualClock()
    store.due = [a_claim(number) for number in range(300)]
    async with running(a_deliverer(store, sender, clock)):
        await store.wait_for(lambda: len(store.settled) == 300)

    assert max(store.limits) == 128
    assert clock.monotonic() == 0


async def test_the_rescuer_frees_and_outlives_a_store_that_is_away(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store: Any = FakeStore()
    store.away = 1
    async with running(DeliveryRescuer(store=store, every_seconds=0.001)):
        await store.wait_for(lambda: store.freed >= 2)

    assert store.away == 0
    (record,) = caplog.records
    assert (record.levelname, record.message) == (
        "WARNING",
        "the store is away; freeing expired deliveries waits for it",
    )


@pytest.mark.parametrize(
    ("answer", "change", "counted"),
    [
        (Answer(404, None), None, {"tempa_webhook_dead_total": 1}),
        (Answer(503, None), Change.OPENED, {"tempa_webhook_breakers_opened_total": 1}),
        (Answer(503, None), Change.FAILING, {}),
        (OK, Change.RECOVERED, {}),
    ],
)
async def test_what_an_outcome_changed_is_counted(
    answer: Answer, change: Change | None, counted: dict[str, int]
) -> None:
    store, meter = FakeStore(), Tally()
    store.due, store.change = [a_claim()], change

    await settled(a_deliverer(store, FakeSender(answer), ManualClock(), meter=meter), store)

    assert dict(meter.counted) == {"tempa_webhook_attempts_total": 1, **counted}


async def test_an_endpoints_own_statuses_are_tried_again() -> None:
    store = FakeStore()
    store.due = [a_claim(1, retry_statuses=frozenset({404})), a_claim(2)]

    await settled(a_deliverer(store, FakeSender(Answer(404, None)), ManualClock()), store, 2)

    assert {claimed.id: then.status for claimed, _, then in store.settled} == {
        "dlv_1": DeliveryStatus.PENDING,
        "dlv_2": DeliveryStatus.DEAD,
    }
