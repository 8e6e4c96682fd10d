"""What each call sends, and how lists are read page by page."""

from __future__ import annotations

import inspect
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tempa.client import AsyncClient, AsyncJobHandle, Client, JobHandle
from tempa.client.async_settlement import AsyncSettlement
from tempa.client.effects import Answer, Lost
from tempa.client.errors import TempaProblem
from tempa.client.operations import Operations
from tempa.client.settlement import Settlement

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.client.conftest import World


def answer(**body: Any) -> Answer:
    return Answer(200, {}, json.dumps(body).encode())


TICKET = answer(job_id="cad_1", status="queued", created_at="2026-01-01T00:00:00Z")
REPLAYED = Answer(200, {"idempotency-replayed": "true"}, TICKET.body)


@pytest.fixture
def do(world: World) -> Operations:
    return Operations(world.pace, 60)


class TestAsking:
    def test_the_source_recipes_body_goes_out_as_it_stands(self, do: Operations, world: World) -> None:
        parameters = {"outer_diameter": 120.5, "hole_pattern": {"count": 6}}

        accepted = world.run(do.generate_model(parameters, {"export_formats": ("step", "glb")}, None), TICKET)

        (call,) = world.calls
        assert (call.method, call.path) == ("POST", "/v1/models/generate")
        assert json.loads(call.body) == {"parameters": parameters, "export_formats": ["step", "glb"]}  # type: ignore[arg-type]
        assert (accepted.ticket.job_id, accepted.replayed) == ("cad_1", False)

    def test_a_key_goes_along_unasked_and_stays_through_repeats(self, do: Operations, world: World) -> None:
        lost = Lost("reset", sent=True)

        accepted = world.run(do.submit({}, "/v1/convert", None), lost, lost, REPLAYED)

        keys = {call.headers["Idempotency-Key"] for call in world.calls}
        assert keys == {accepted.idempotency_key}
        assert accepted.replayed

    def test_two_calls_are_two_keys(self, do: Operations, world: World) -> None:
        first = world.run(do.submit({}, "/v1/convert", None), TICKET)
        second = world.run(do.submit({}, "/v1/convert", None), TICKET)

        assert first.idempotency_key != second.idempotency_key

    def test_ones_own_key_is_used(self, do: Operations, world: World) -> None:
        world.run(do.submit({}, "/v1/convert", "order-17"), TICKET)

        assert world.calls[0].headers["Idempotency-Key"] == "order-17"

    def test_every_call_that_changes_something_has_a_key(
        self, do: Operations, world: World, tmp_path: Path
    ) -> None:
        (tmp_path / "part.step").write_bytes(b"ISO")
        file = answer(file_id="file_1", sha256="", file_size_bytes=3, expires_at="2026-01-01T00:00:00Z")
        canceled = answer(job_id="cad_1", status="canceled", outcome="canceled")

        world.run(do.retry("cad_1", None), TICKET)
        world.run(do.upload(tmp_path / "part.step", None), file)
        world.run(do.cancel("cad_1"), canceled)
        world.run(do.redrive({}, None, dry_run=False), answer(matched=1, redriven=1))
        world.run(do.discard(["dlv_1"], "old"), answer(discarded=1))
        world.run(do.create_key("ci", ["admin"]), answer(api_key="k"))

        assert [call.method for call in world.calls] == ["POST"] * 6
        assert len({call.headers["Idempotency-Key"] for call in world.calls}) == 6

    def test_a_number_json_cannot_say_never_leaves_the_house(self, do: Operations, world: World) -> None:
        with pytest.raises(ValueError, match="not JSON compliant"):
            world.run(do.submit({"parameters": {"length": float("nan")}}, "/v1/convert", None))

        assert world.calls == []

    def test_an_id_cannot_lead_to_another_route(self, do: Operations, world: World) -> None:
        world.run(do.delete("../keys/key_1?x=#"), Answer(204, {}))

        assert world.calls[0].path == "/v1/jobs/..%2Fkeys%2Fkey_1%3Fx%3D%23"


def delivery(number: int) -> dict[str, Any]:
    return {
        "delivery_id": f"dlv_{number}",
        "event_id": "evt_1",
        "type": "cad_generation.completed",
        "job_id": "cad_1",
        "endpoint_id": "ep_1",
        "url": "https://shop.example/hook",
        "status": "dead",
        "attempt_count": 6,
        "reason": "exhausted",
        "what_next": "Re-drive it.",
        "created_at": "2026-01-01T00:00:00Z",
        "next_attempt_at": None,
        "finished_at": None,
    }


class TestLists:
    def pages(self, *sizes: int) -> list[Answer]:
        numbers = iter(range(100))
        items = [[delivery(next(numbers)) for _ in range(size)] for size in sizes]
        cursors = [f"c{number}" for number in range(1, len(sizes))] + [None]
        return [answer(items=page, next_cursor=cursor) for page, cursor in zip(items, cursors, strict=True)]

    def test_pages_are_read_to_the_last(self, do: Operations, world: World) -> None:
        world.run(do.deliveries(None, {"status": "dead"}), *self.pages(2, 0, 3))

        assert [item.delivery_id for item in world.emitted] == [f"dlv_{number}" for number in range(5)]
        assert [call.query.get("cursor") for call in world.calls] == [None, "c1", "c2"]
        assert {call.query["status"] for call in world.calls} == {"dead"}

    def test_a_limit_fetches_no_more_than_it_needs(self, do: Operations, world: World) -> None:
        world.run(do.deliveries(3, {}), *self.pages(2, 2)[:2])

        assert len(world.emitted) == 3
        assert [call.query["limit"] for call in world.calls] == ["3", "1"]

    def test_a_limit_of_nothing_asks_nothing(self, do: Operations, world: World) -> None:
        world.run(do.deliveries(0, {}))

        assert world.calls == []

    def test_times_are_asked_for_in_rfc_3339(self, do: Operations, world: World) -> None:
        world.run(do.jobs(1, {"since": datetime(2026, 1, 2, tzinfo=UTC)}), answer(items=[], next_cursor=None))
        world.run(
            do.redrive({"since": datetime(2026, 1, 2, tzinfo=UTC)}, 5.0, dry_run=True),
            answer(matched=0, redriven=0),
        )

        assert world.calls[0].query["since"] == "2026-01-02T00:00:00.000Z"
        assert json.loads(world.calls[1].body) == {  # type: ignore[arg-type]
            "since": "2026-01-02T00:00:00.000Z",
            "rate_per_second": 5.0,
            "dry_run": True,
        }

    def test_items_that_are_not_tempas_are_refused(self, do: Operations, world: World) -> None:
        with pytest.raises(TempaProblem, match="not as Tempa does"):
            world.run(do.jobs(None, {}), answer(items=[{"id": 1}], next_cursor=None))

    def test_the_feed_goes_on_from_the_last_position_until_there_is_no_more(
        self, do: Operations, world: World
    ) -> None:
        def event(position: int) -> dict[str, Any]:
            return {
                "id": f"evt_{position}",
                "sequence": 1,
                "type": "job.queued",
                "at": "2026-01-01T00:00:00Z",
                "job_id": "cad_1",
                "position": position,
            }

        world.run(
            do.feed(7),
            answer(items=[event(8), event(11)], next_cursor=None),
            answer(items=[event(12)], next_cursor=None),
            answer(items=[], next_cursor=None),
        )

        assert [event.position for event in world.emitted] == [8, 11, 12]
        assert [call.query["after"] for call in world.calls] == ["7", "11", "12"]


def parameters(member: Any) -> list[tuple[str, Any, Any]]:
    function: Any = member.fget if isinstance(member, property) else member
    signature = inspect.signature(function)
    return [(each.name, each.kind, each.default) for each in signature.parameters.values()]


@pytest.mark.parametrize(
    ("blocking", "awaited"),
    [(Client, AsyncClient), (Settlement, AsyncSettlement), (JobHandle, AsyncJobHandle)],
)
def test_both_clients_have_the_same_calls(blocking: type, awaited: type) -> None:
    ours = {name: member for name, member in vars(blocking).items() if not name.startswith("_")}
    theirs = {name: member for name, member in vars(awaited).items() if not name.startswith("_")}

    assert ours.keys() == theirs.keys()
    for name, member in ours.items():
        assert parameters(member) == parameters(theirs[name]), name
        assert member.__doc__, f"{name} is not told"
        assert isinstance(member, property) or member.__doc__ == theirs[name].__doc__
