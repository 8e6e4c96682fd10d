"""Tables at any width: nothing is cut, words of the last column go on below."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tempa.cli.table import table_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tests.unit.cli.conftest import FakeServer, Terminal

JOB = "cad_06b3zq9x1v8k2m4n5p7r0s3t6w"
DELIVERY = "dlv_06b3zq9x1v8k2m4n5p7r0s3t6w"
GROUP = "ep_06b3zq9x1v8k2m4n5p7r0s3t6w.exhausted"


@pytest.fixture(params=[20, 80, 100], autouse=True)
def columns(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("COLUMNS", str(request.param))
    return int(request.param)


def letter() -> dict[str, Any]:
    return {
        "delivery_id": DELIVERY,
        "event_id": "evt_1",
        "type": "3d_reconstruction.completed",
        "job_id": JOB,
        "endpoint_id": "ep_1",
        "url": "https://shop.example/hook",
        "status": "dead",
        "attempt_count": 6,
        "reason": "exhausted",
        "what_next": "Re-drive it.",
        "created_at": "2026-01-01T00:00:00Z",
        "next_attempt_at": None,
        "finished_at": "2026-01-01T00:05:00Z",
    }


def test_jobs_have_their_whole_ids(
    server: FakeServer, tempa: Terminal, job_view: Callable[..., dict[str, Any]]
) -> None:
    error = {"code": "MASK_PROVIDER_UNAVAILABLE", "message": "No.", "retryable": False}
    jobs = [job_view("failed", job_id=JOB, engine="triposplat-v1-preview", error=error)]
    server.on_json("GET /v1/jobs", {"items": jobs, "next_cursor": None})

    shown = tempa.show("jobs", "ls").stdout

    assert JOB in shown
    assert "MASK_PROVIDER_UNAVAILABLE" in shown
    assert "…" not in shown


def test_groups_have_their_whole_ids(server: FakeServer, tempa: Terminal) -> None:
    group = {
        "group": GROUP,
        "url": "https://shop.example/" + "hook/" * 30,
        "endpoint_id": "ep_1",
        "reason": "exhausted",
        "count": 12,
        "what_next": "Re-drive it once the receiver answers again.",
        "oldest": "2026-01-01T00:00:00Z",
        "newest": "2026-01-02T00:00:00Z",
        "last_http_status": 503,
        "last_error": None,
    }
    server.on_json("GET /v1/webhooks/dead-letters", {"items": [group], "next_cursor": None})

    shown = tempa.show("dead-letters", "ls").stdout

    assert GROUP in shown
    assert str(group["url"]) in shown
    assert "exhausted: Re-drive it once the receiver answers again." in shown


def test_letters_have_their_whole_ids(server: FakeServer, tempa: Terminal) -> None:
    server.on_json("GET /v1/webhooks/dead-letters", {"items": [letter()], "next_cursor": None})

    shown = tempa.show("dead-letters", "show", GROUP).stdout

    assert DELIVERY in shown
    assert JOB in shown


def test_keys_have_their_whole_ids(tempa: Terminal, tmp_path: Any) -> None:
    data = ("--data", str(tmp_path / "data"))
    made = [json.loads(tempa.run("keys", "create", f"key number {n}", *data).stdout) for n in range(2)]

    shown = tempa.show("keys", "ls", *data).stdout

    assert [key["id"] for key in made if key["id"] not in shown] == []


def test_the_last_column_goes_on_below_itself() -> None:
    lines = table_lines(("id", "finding"), [[JOB, "four words stand here, then some more words"]], 60)

    assert lines == [
        "id                              finding",
        "------------------------------  ----------------------------",
        f"{JOB}  four words stand here, then",
        "                                some more words",
    ]


def test_where_there_is_no_room_a_line_overflows() -> None:
    assert table_lines(("id", "finding"), [[JOB, "a few words more than fit"]], 40)[-1] == (
        f"{JOB}  a few words more than fit"
    )


def test_what_others_wrote_does_not_steer_the_terminal(
    server: FakeServer, tempa: Terminal, job_view: Callable[..., dict[str, Any]]
) -> None:
    jobs = [job_view("queued", engine="\x1b[2J\r\nevil")]
    server.on_json("GET /v1/jobs", {"items": jobs, "next_cursor": None})

    shown = tempa.show("jobs", "ls").stdout

    assert "\x1b" not in shown
    assert "?[2J??evil" in shown
