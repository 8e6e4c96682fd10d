"""When a call is made again: whenever that is safe and may help, until its time is over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tempa.client.calls import create_key, look, submit
from tempa.client.effects import Answer, Lost
from tempa.client.errors import NotAuthorized, NotReachable, TempaProblem
from tempa.client.exchange import exchange, read
from tempa.jobs.wire import Ticket

if TYPE_CHECKING:
    from tests.unit.client.conftest import World

REFUSED = Lost("connection refused", sent=False)
BROKEN = Lost("connection reset", sent=True)
OK = Answer(200, {}, b"{}")


def problem(status: int, slug: str, detail: str = "why", **members: Any) -> Answer:
    body = {"type": f"urn:tempa:problem:{slug}", "title": "t", "status": status, "detail": detail, **members}
    return Answer(status, {"content-type": "application/problem+json"}, json.dumps(body).encode())


def test_a_lost_answer_is_asked_for_again_with_the_same_key(world: World) -> None:
    call = submit({"parameters": {}}, "/v1/models/generate", "idem_1")

    answer = world.run(exchange(call, world.pace, 60), REFUSED, BROKEN, Answer(504, {}), OK)

    assert answer is OK
    assert [made.headers["Idempotency-Key"] for made in world.calls] == ["idem_1"] * 4
    assert {made.body for made in world.calls} == {b'{"parameters":{}}'}
    assert world.pauses == [0.25, 0.5, 1.0]  # half of 0.5, 1, 2


def test_the_wait_between_tries_is_capped(world: World) -> None:
    world.run(exchange(look("/"), world.pace, 1000), *[REFUSED] * 9, OK)

    assert world.pauses == [0.25, 0.5, 1.0, 2.0, 4.0, 7.5, 7.5, 7.5, 7.5]


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_waited_out(world: World, status: int) -> None:
    busy = Answer(status, {"retry-after": "7"})

    world.run(exchange(look("/"), world.pace, 60), busy, OK)

    assert world.pauses == [7.25]  # what was asked, and some jitter: not everybody at once


def test_retry_after_may_be_a_date(world: World) -> None:
    busy = Answer(503, {"retry-after": "Thu, 01 Jan 2026 00:00:20 GMT"})

    world.run(exchange(look("/"), world.pace, 60), busy, OK)

    assert world.pauses == [20.25]


@pytest.mark.parametrize("text", ["soon", "-5", "\u0663", "Thu, 01 Jan 1970 00:00:00 GMT", ""])
def test_a_retry_after_nobody_can_use_is_passed_over(world: World, text: str) -> None:
    world.run(exchange(look("/"), world.pace, 60), Answer(503, {"retry-after": text}), OK)

    assert world.pauses == [0.25]


def test_a_retry_after_beyond_the_deadline_ends_the_call_at_once(world: World) -> None:
    with pytest.raises(NotReachable) as caught:
        world.run(exchange(look("/"), world.pace, 60), Answer(503, {"retry-after": "61"}))

    assert caught.value.status == 503
    assert world.pauses == []


def test_no_answer_until_the_deadline_is_not_reachable(world: World) -> None:
    with pytest.raises(NotReachable, match="connection refused") as caught:
        world.run(exchange(look("/"), world.pace, 3), *[REFUSED] * 4)

    assert caught.value.status == 0
    assert world.seconds <= 3


@pytest.mark.parametrize("status", [400, 404, 409, 410, 413, 422, 500])
def test_an_answer_that_stays_the_same_is_not_asked_for_again(world: World, status: int) -> None:
    with pytest.raises(TempaProblem) as caught:
        world.run(exchange(look("/"), world.pace, 60), problem(status, "not-found"))

    assert caught.value.status == status


def test_a_first_request_that_is_being_admitted_is_waited_for(world: World) -> None:
    call = submit({}, "/v1/models/generate", "idem_1")

    assert world.run(exchange(call, world.pace, 60), problem(409, "request-in-progress"), OK) is OK


class TestCallsThatMustNotBeMadeTwice:
    def test_a_lost_answer_ends_them(self, world: World) -> None:
        with pytest.raises(NotReachable):
            world.run(exchange(create_key("ci", ["jobs:read"]), world.pace, 60), BROKEN)

    def test_a_proxy_that_lost_the_answer_ends_them(self, world: World) -> None:
        with pytest.raises(NotReachable):
            world.run(exchange(create_key("ci", ["jobs:read"]), world.pace, 60), Answer(502, {}))

    def test_what_was_surely_not_acted_on_is_repeated(self, world: World) -> None:
        call = create_key("ci", ["jobs:read"])

        assert world.run(exchange(call, world.pace, 60), REFUSED, Answer(503, {}), Answer(429, {}), OK) is OK


class TestWhatAnErrorTells:
    def test_every_fault_of_the_request_by_pointer(self, world: World) -> None:
        errors = [
            {"pointer": "/parameters/fillet_radius", "message": "must be at most 37.749", "limit": 37.749},
            {"pointer": "/priority", "message": "must be at most 9", "limit": 9},
        ]
        refusal = problem(
            422, "invalid-request", "The request is not valid.", errors=errors, code="INVALID_REQUEST"
        )

        with pytest.raises(TempaProblem) as caught:
            world.run(exchange(look("/"), world.pace, 60), refusal)

        assert caught.value.slug == "invalid-request"
        assert caught.value.code == "INVALID_REQUEST"
        assert [(fault.pointer, fault.limit) for fault in caught.value.errors] == [
            ("/parameters/fillet_radius", 37.749),
            ("/priority", 9),
        ]
        assert "/parameters/fillet_radius: must be at most 37.749" in str(caught.value)
        assert "/priority: must be at most 9" in str(caught.value)

    @pytest.mark.parametrize(
        ("status", "slug"), [(401, "malformed-key"), (401, "revoked-key"), (403, "missing-scope")]
    )
    def test_which_way_a_key_is_wrong(self, world: World, status: int, slug: str) -> None:
        with pytest.raises(NotAuthorized) as caught:
            world.run(exchange(look("/"), world.pace, 60), problem(status, slug))

        assert caught.value.slug == slug

    def test_what_a_problem_carries_besides(self, world: World) -> None:
        with pytest.raises(TempaProblem) as caught:
            world.run(
                exchange(look("/"), world.pace, 60), problem(402, "rental-required", quote={"quote_id": "q"})
            )

        assert caught.value.extra == {"quote": {"quote_id": "q"}}

    @pytest.mark.parametrize("body", [b"", b"<html>Bad", b"[]", b'{"error": "x"}', b"\xff"])
    def test_an_answer_that_is_not_tempas_is_told_all_the_same(self, world: World, body: bytes) -> None:
        with pytest.raises(TempaProblem, match="answered 418 and did not say why") as caught:
            world.run(exchange(look("/"), world.pace, 60), Answer(418, {}, body))

        assert caught.value.slug == "unknown"

    def test_a_redirect_names_the_address_to_use(self, world: World) -> None:
        with pytest.raises(TempaProblem, match=r"points to https://tempa\.example/v1"):
            world.run(
                exchange(look("/"), world.pace, 60), Answer(308, {"location": "https://tempa.example/v1"})
            )


@pytest.mark.parametrize("body", [b"<html>Welcome to the hotel's network", b"{}", b"[]"])
def test_a_page_that_is_not_tempas_is_never_taken_for_a_ticket(body: bytes) -> None:
    with pytest.raises(TempaProblem, match="not as Tempa does"):
        read(Ticket, Answer(200, {}, body))
