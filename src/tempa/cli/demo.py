"""`tempa demo`: a CAD job and an image job, from request to verified webhook, on this machine."""

from __future__ import annotations

import hashlib
import hmac
import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tempa.cli.closed_form import flanged_tube_volume
from tempa.cli.exits import FAULT, CommandFault, outcome_of
from tempa.cli.invocation import command_line, example_request
from tempa.testing.seeds import SEED_001

if TYPE_CHECKING:
    from rich.console import Console

    from tempa.client import Client, JobHandle
    from tempa.jobs.wire import JobView
    from tempa.testing.receiver import Received, Receiver

_RELATIVE_ERROR_MAX = 1e-9
_WEBHOOK_SECONDS = 20.0
_JOB_SECONDS = 180.0  # on a new machine kernels are compiled first, which takes a slow one a while
_PART, _PICTURE = "/ok", "/ok/202"  # where the webhook of each is sent: any 2xx is success
_MADE = (
    "model.step",
    "webhook.json",
    "picture.png",
    "model.ply",
    "model.spz",
    "preview.png",
    "splat-webhook.json",
)


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where its files go.")] = Path(
        "demo-out"
    ),
) -> None:
    """Start a server, make a flanged tube and the splats of a picture, check both, stop the server."""
    from rich.console import Console

    console = Console(highlight=False)
    try:
        _play(output.resolve(), console)
    except Exception as error:
        outcome = outcome_of(error)
        if outcome is None:
            raise
        _print(console, ("✗ ", "red"), "\n  ".join(outcome.lines))
        raise typer.Exit(FAULT) from None


def _play(folder: Path, console: Console) -> None:
    from tempa.cli.local_server import local_server
    from tempa.client import Client
    from tempa.testing.receiver import Receiver

    started = time.monotonic()
    _clear(folder)
    with local_server(folder) as server, Receiver() as receiver:
        _tell(console, "Server", f"{server['url']}, ready after {time.monotonic() - started:.1f} s")
        with Client(server["url"], server["api_key"]) as tempa:
            job = _make(tempa, receiver, folder, console)
            secret = server["webhook_secret"]
            expected = _Webhook(_PART, secret, "cad_generation.completed", folder / "webhook.json")
            _check_webhook(job, receiver, expected, console)
            _print(console, "")
            job = _make_splats(tempa, receiver, folder, console)
            file = folder / "splat-webhook.json"
            expected = _Webhook(_PICTURE, secret, "3d_reconstruction.completed", file)
            _check_webhook(job, receiver, expected, console)
            _print(console, "")
    _tell(console, "Stopped", f"by SIGTERM, in good order; {time.monotonic() - started:.1f} s in all")
    _print(console, f"\nThe files lie in {folder}: {', '.join(_MADE)}, server.log, data/")
    _print(console, "Look at preview.png. SuperSplat, Spark and others open model.ply and model.spz.")
    cad = command_line("run", "cad", example_request(), "-o", "out")
    splat = command_line("run", "splat", "PICTURE", "-o", "out")
    _print(
        console, "Go on: ", (command_line("up"), "bold"), ", then ", (cad, "bold"), " or ", (splat, "bold")
    )


def _clear(folder: Path) -> None:
    """Begin anew; what the demo did not make is left alone."""
    if (folder / "data" / "credentials.json").exists():
        shutil.rmtree(folder / "data")
    for name in _MADE:
        (folder / name).unlink(missing_ok=True)


def _make(tempa: Client, receiver: Receiver, folder: Path, console: Console) -> JobView:
    """From request to file."""
    document = {**SEED_001, "webhook_url": receiver.url(_PART)}
    handle = tempa.submit(document)
    _tell(console, "Ticket", f"202 {handle.id}: on disk, whatever happens now")
    again = tempa.submit(document, idempotency_key=handle.idempotency_key)
    _expect(again.id == handle.id and again.replayed, f"the same key gave another job: {again.id}")
    _tell(console, "Again", "the same key gives the same job, and nothing runs twice")
    job = _follow(handle, console)
    (file,) = tempa.download(job, folder)
    _tell(console, "File", f"{file.name}, {file.stat().st_size} bytes, SHA-256 as the job says")
    _check_volume(job, console)
    return job


def _make_splats(tempa: Client, receiver: Receiver, folder: Path, console: Console) -> JobView:
    """From a picture to splats."""
    from tempa.testing.pictures import toadstool

    picture = folder / "picture.png"
    picture.write_bytes(toadstool())
    handle = tempa.generate_splat(picture, webhook_url=receiver.url(_PICTURE))
    _tell(console, "Ticket", f"202 {handle.id}: splats of picture.png, by relief-splat")
    job = _follow(handle, console)
    files = tempa.download(job, folder)
    _check_splats(job)
    told = ", ".join(f"{file.name} ({file.stat().st_size} bytes)" for file in files)
    _tell(console, "Files", told)
    return job


def _check_splats(job: JobView) -> None:
    """The .ply has a record of 68 bytes for each Gaussian that was measured, behind its header."""
    assert job.result is not None
    count = job.result.measurements["gaussians"]
    size = job.result.artifacts[0].file_size_bytes
    _expect(0 < size - 68 * count < 1024, f"model.ply has {size} bytes for {count} Gaussians")


def _follow(handle: JobHandle, console: Console) -> JobView:
    from tempa.cli.watch import stage_words

    began = time.monotonic()
    for event in handle.events():
        words = stage_words(event.type, event.body)
        if words and event.sequence is not None:
            _print(console, f"    {time.monotonic() - began:5.2f} s  {words}")
    job = handle.wait(_JOB_SECONDS)
    _tell(console, "Completed", f"{job.compute_time_ms} ms in the kernel, in a process of its own")
    return job


def _check_volume(job: JobView, console: Console) -> None:
    measured = job.result.measurements["volume"] if job.result else 0.0
    expected = flanged_tube_volume(SEED_001["parameters"])
    error = abs(measured - expected) / expected
    _expect(
        error <= _RELATIVE_ERROR_MAX,
        f"the volume is {measured!r} mm3; the closed form says {expected!r} (relative error {error:.1e})",
    )
    _tell(console, "Volume", f"{measured:.6f} mm3; closed form {expected:.6f}: relative error {error:.1e}")


@dataclass(frozen=True, slots=True)
class _Webhook:
    """What must have come to which path, and where it is put."""

    path: str
    secret: str
    event: str
    file: Path


def _check_webhook(job: JobView, receiver: Receiver, expected: _Webhook, console: Console) -> None:
    try:
        (delivery,) = receiver.wait_for(1, _WEBHOOK_SECONDS, expected.path)
    except TimeoutError:
        raise CommandFault(f"No webhook came within {_WEBHOOK_SECONDS:g} s.") from None
    expected.file.write_bytes(delivery.body)
    event = json.loads(delivery.body)
    _expect(event["data"]["job_id"] == job.job_id, "the webhook is of another job")
    _expect(event["type"] == expected.event, f"the webhook says {event['type']}")
    ways = _verify(delivery, expected.secret)
    _tell(console, "Webhook", f"{event['type']}, verified by {', '.join(ways)}")


def _verify(delivery: Received, secret: str) -> list[str]:
    """Three independent readings of the same signature headers."""
    from tempa.webhooks import WebhookVerificationError, verify

    try:
        verify(delivery.body, delivery.headers, secret)
    except WebhookVerificationError as error:
        raise CommandFault(f"tempa.webhooks.verify refuses the webhook: {error}") from None
    plain = hmac.new(secret.encode("utf-8"), delivery.body, hashlib.sha256).hexdigest()
    given = delivery.headers.get("x-webhook-signature", "")
    _expect(hmac.compare_digest(plain, given), "X-Webhook-Signature is not the body's HMAC-SHA256 in hex")
    return ["tempa.webhooks.verify", "plain HMAC", *_verify_officially(delivery, secret)]


def _verify_officially(delivery: Received, secret: str) -> list[str]:
    try:
        import standardwebhooks
    except ImportError:  # a development dependency: the proof is there for who has it
        return []
    try:
        standardwebhooks.Webhook(secret).verify(delivery.body, dict(delivery.headers))
    except standardwebhooks.WebhookVerificationError as error:
        raise CommandFault(f"the standardwebhooks library refuses the webhook: {error}") from None
    return ["the standardwebhooks library"]


def _expect(holds: bool, words: str) -> None:
    if not holds:
        raise CommandFault(f"This does not hold: {words}.")


def _tell(console: Console, what: str, words: str) -> None:
    _print(console, ("✓ ", "green"), (f"{what:10} ", "bold"), words)


def _print(console: Console, *parts: str | tuple[str, str]) -> None:
    """Text with its styles beside it: what a server says is never read as markup."""
    from rich.text import Text

    console.print(Text.assemble(*parts), soft_wrap=True)
