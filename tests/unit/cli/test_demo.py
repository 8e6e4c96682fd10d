"""The demo believes nothing: each thing it says it checked makes it fail when it does not hold."""

from __future__ import annotations

import io
import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from tempa.cli import demo, demo_webhook
from tempa.cli.exits import CommandFault
from tempa.core.signing import webhook_headers
from tempa.jobs.wire import JobView
from tempa.testing.receiver import Received

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
VOLUME = 2801746.16196747  # CONTRACTS section 2
ABOUT = ("job_id", "cad_1")


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO())


def delivery(event_id: str = "evt_1", job_id: str = "cad_1", secret: str = SECRET) -> Received:
    event = {"type": "cad_generation.completed", "id": event_id, "data": {"job_id": job_id}}
    body = json.dumps(event).encode()
    signed = webhook_headers([secret], "evt_1", int(time.time()), body)
    headers = {name.lower(): value for name, value in signed}
    return Received("POST", "/ok", headers, body, 0.0, 1, 1)


def completed(view: Callable[..., dict[str, Any]], volume: float) -> JobView:
    artifact = {
        "name": "model.step",
        "role": "step",
        "file_format": "step",
        "media_type": "model/step",
        "file_size_bytes": 1,
        "sha256": "",
        "download_url": "https://bucket.test/model.step",
        "expires_at": "2026-01-01T01:00:00Z",
    }
    result = {**artifact, "artifacts": [artifact], "measurements": {"volume": volume}}
    return JobView.model_validate(view("completed", result=result))


class Box:
    """A receiver that got these."""

    def __init__(self, *deliveries: Received) -> None:
        self._deliveries = list(deliveries)

    def wait_for(self, count: int, timeout_seconds: float, path: str) -> list[Received]:
        if len(self._deliveries) < count:
            raise TimeoutError
        return self._deliveries


def test_the_right_volume_passes(console: Console, job_view: Callable[..., dict[str, Any]]) -> None:
    demo._check_volume(completed(job_view, VOLUME), console)


@pytest.mark.parametrize("volume", [VOLUME * (1 + 1e-8), VOLUME * (1 - 1e-8), 0.0])
def test_a_volume_that_is_a_hundredth_of_a_millionth_off_does_not(
    console: Console, job_view: Callable[..., dict[str, Any]], volume: float
) -> None:
    with pytest.raises(CommandFault, match="closed form"):
        demo._check_volume(completed(job_view, volume), console)


def test_a_webhook_is_verified_in_three_ways() -> None:
    assert demo_webhook.verified_by(delivery(), SECRET) == [
        "tempa.webhooks.verify",
        "plain HMAC",
        "the standardwebhooks library",
    ]


def test_a_webhook_signed_by_somebody_else_does_not_pass() -> None:
    with pytest.raises(CommandFault, match=r"tempa\.webhooks\.verify refuses"):
        demo_webhook.verified_by(delivery(secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), SECRET)


def test_the_plain_signature_is_checked_by_itself() -> None:
    received = delivery()
    headers = {**received.headers, "x-webhook-signature": "0" * 64}
    changed = Received("POST", "/ok", headers, received.body, 0.0, 1, 1)

    with pytest.raises(CommandFault, match="HMAC-SHA256"):
        demo_webhook.verified_by(changed, SECRET)


def expected(folder: Path, event: str = "cad_generation.completed") -> demo_webhook.Webhook:
    return demo_webhook.Webhook("/ok", SECRET, event, folder / "webhook.json")


def test_a_webhook_of_another_family_does_not_pass(console: Console, tmp_path: Path) -> None:
    webhook = expected(tmp_path, "3d_reconstruction.completed")
    with pytest.raises(CommandFault, match="the webhook says cad_generation"):
        demo_webhook.check_webhook(Box(delivery()), webhook, ABOUT, console)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [0, 68 * 100, 68 * 101])
def test_a_ply_that_cannot_hold_what_was_measured_does_not_pass(
    job_view: Callable[..., dict[str, Any]], size: int
) -> None:
    job = completed(job_view, VOLUME)
    assert job.result is not None
    artifact = job.result.artifacts[0].model_copy(update={"file_size_bytes": size})
    result = job.result.model_copy(update={"artifacts": [artifact], "measurements": {"gaussians": 101}})
    with pytest.raises(CommandFault, match=r"model\.ply has"):
        demo._check_splats(job.model_copy(update={"result": result}))


@pytest.mark.parametrize(
    ("box", "words"),
    [(Box(), "No webhook came"), (Box(delivery(job_id="cad_2")), "another job_id: cad_2")],
    ids=["none", "of another job"],
)
def test_the_webhook_must_come_and_be_the_jobs(
    box: Any, words: str, console: Console, tmp_path: Path
) -> None:
    with pytest.raises(CommandFault, match=words):
        demo_webhook.check_webhook(box, expected(tmp_path), ABOUT, console)


def test_only_what_the_demo_made_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/thesis.odt").touch()
    (tmp_path / "model.step").touch()

    demo._clear(tmp_path)

    assert (tmp_path / "data/thesis.odt").exists()
    assert not (tmp_path / "model.step").exists()


@pytest.mark.parametrize("missing", ["solders", "websockets"])
def test_without_what_a_chain_takes_the_rest_is_shown(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda name: None if name == missing else object())
    with demo._chain() as chain:
        assert chain is None
