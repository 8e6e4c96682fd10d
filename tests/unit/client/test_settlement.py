"""What the calls about rentals and payments send."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tempa.client.effects import Answer, Lost
from tempa.client.errors import TempaProblem
from tempa.client.operations import Operations

if TYPE_CHECKING:
    from tests.unit.client.conftest import World

PRICES: Any = [{"asset": "SOL", "amount": "5", "seconds": 1}]
GPU = Answer(
    201,
    {},
    json.dumps(
        {
            "id": "gpu_1",
            "name": "H200",
            "status": "AVAILABLE",
            "current_expiry": None,
            "renter": None,
            "prices": PRICES,
            "created_at": "2026-01-01T00:00:00Z",
            "suspended_at": None,
            "a_field_of_tomorrow": 1,
        }
    ).encode(),
)
EMPTY = Answer(200, {}, b'{"items": [], "next_cursor": null}')


@pytest.fixture
def do(world: World) -> Operations:
    return Operations(world.pace, 60)


def test_an_offer_whose_answer_is_lost_is_not_made_twice(do: Operations, world: World) -> None:
    """Nobody would notice the second instance until somebody rents it."""
    with pytest.raises(TempaProblem):
        world.run(do.add_gpu_instance("H200", PRICES), Lost("reset", sent=True))

    (call,) = world.calls
    assert (call.method, call.path) == ("POST", "/v1/gpu-instances")
    assert json.loads(call.body) == {"name": "H200", "prices": PRICES}  # type: ignore[arg-type]


def test_an_offer_that_was_never_sent_is_sent_again(do: Operations, world: World) -> None:
    made = world.run(do.add_gpu_instance("H200", PRICES), Lost("refused", sent=False), GPU)

    assert (made.id, made.prices[0].amount) == ("gpu_1", "5")


@pytest.mark.parametrize(
    ("name", "arguments", "method", "path", "body"),
    [
        ("change_prices", ("gpu_1", PRICES), "PATCH", "/v1/gpu-instances/gpu_1", {"prices": PRICES}),
        ("suspend_gpu_instance", ("gpu_1",), "POST", "/v1/gpu-instances/gpu_1/suspend", None),
        ("resume_gpu_instance", ("gpu_1",), "POST", "/v1/gpu-instances/gpu_1/resume", None),
    ],
)
def test_a_change_may_be_repeated(
    do: Operations, world: World, name: str, arguments: Any, method: str, path: str, body: Any
) -> None:
    world.run(getattr(do, name)(*arguments), Lost("reset", sent=True), GPU)

    first, second = world.calls
    assert first == second
    assert (first.method, first.path) == (method, path)
    assert (json.loads(first.body) if first.body else None) == body  # type: ignore[arg-type]


def test_a_proof_is_taken_as_it_is(do: Operations, world: World) -> None:
    proof = world.run(do.proof("5sig"), Answer(200, {}, b'{"root": "ab", "path": [1, {"n": null}]}'))

    assert world.calls[0].path == "/v1/payments/5sig/proof"
    assert proof == {"root": "ab", "path": [1, {"n": None}]}


def test_a_name_from_elsewhere_leads_to_no_other_route(do: Operations, world: World) -> None:
    world.run(do.quote_qr("../../keys?x"), EMPTY)
    world.run(do.ledger_csv(None), EMPTY)
    world.run(do.ledger_csv("a b"), EMPTY)

    assert world.calls[0].path == "/v1/rentals/quotes/..%2F..%2Fkeys%3Fx/qr"
    assert [call.query for call in world.calls[1:]] == [
        {"format": "csv"},
        {"format": "csv", "account": "a b"},
    ]
