"""`tempa demo`: CAD, splats and a rented GPU, from request to verified webhook, on this machine."""

from __future__ import annotations

import contextlib
import shutil
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tempa.cli.closed_form import flanged_tube_volume
from tempa.cli.demo_console import expect, show, tell
from tempa.cli.demo_webhook import Webhook, check_webhook
from tempa.cli.exits import FAULT, outcome_of
from tempa.cli.invocation import command_line, example_request
from tempa.testing.seeds import SEED_001

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from tempa.cli.demo_chain import DemoChain
    from tempa.client import Client, JobHandle
    from tempa.jobs.wire import JobView
    from tempa.testing.receiver import Receiver

_RELATIVE_ERROR_MAX = 1e-9
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
    "rental-webhook.json",
    "proof.json",
)


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where its files go.")] = Path(
        "demo-out"
    ),
) -> None:
    """Start a server, make a flanged tube and the splats of a picture, rent a GPU, check all of it, stop."""
    from rich.console import Console

    console = Console(highlight=False)
    try:
        _play(output.resolve(), console)
    except Exception as error:
        outcome = outcome_of(error)
        if outcome is None:
            raise
        show(console, ("✗ ", "red"), "\n  ".join(outcome.lines))
        raise typer.Exit(FAULT) from None


def _play(folder: Path, console: Console) -> None:
    from tempa.cli.demo_rental import Stage, show_rental
    from tempa.cli.local_server import local_server
    from tempa.client import Client
    from tempa.testing.receiver import Receiver

    started = time.monotonic()
    _clear(folder)
    with (
        _chain() as chain,
        Receiver() as receiver,
        local_server(folder, chain.environment() if chain else {}) as server,
        Client(server["url"], server["api_key"]) as tempa,
    ):
        tell(console, "Server", f"{server['url']}, ready after {time.monotonic() - started:.1f} s")
        _show_jobs(tempa, receiver, folder, server["webhook_secret"], console)
        if chain is None:
            show(console, "What renting a GPU looks like needs pip install 'tempa[solana]'.\n")
        else:
            show_rental(Stage(tempa, server["url"], chain, receiver, folder, console))
    tell(console, "Stopped", f"by SIGTERM, in good order; {time.monotonic() - started:.1f} s in all")
    _say_goodbye(folder, console)


@contextlib.contextmanager
def _chain() -> Iterator[DemoChain | None]:
    """None where what it takes is not installed."""
    if not all(find_spec(name) for name in ("solders", "websockets")):
        yield None
        return
    from tempa.cli.demo_chain import demo_chain

    with demo_chain() as chain:
        yield chain


def _show_jobs(tempa: Client, receiver: Receiver, folder: Path, secret: str, console: Console) -> None:
    job = _make(tempa, receiver, folder, console)
    expected = Webhook(_PART, secret, "cad_generation.completed", folder / "webhook.json")
    check_webhook(receiver, expected, ("job_id", job.job_id), console)
    show(console, "")
    job = _make_splats(tempa, receiver, folder, console)
    expected = Webhook(_PICTURE, secret, "3d_reconstruction.completed", folder / "splat-webhook.json")
    check_webhook(receiver, expected, ("job_id", job.job_id), console)
    show(console, "")


def _say_goodbye(folder: Path, console: Console) -> None:
    made = ", ".join(name for name in _MADE if (folder / name).exists())
    show(console, f"\nThe files lie in {folder}: {made}, server.log, data/")
    show(console, "Look at preview.png. SuperSplat, Spark and others open model.ply and model.spz.")
    cad = command_line("run", "cad", example_request(), "-o", "out")
    splat = command_line("run", "splat", "PICTURE", "-o", "out")
    show(console, "Go on: ", (command_line("up"), "bold"), ", then ", (cad, "bold"), " or ", (splat, "bold"))


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
    tell(console, "Ticket", f"202 {handle.id}: on disk, whatever happens now")
    again = tempa.submit(document, idempotency_key=handle.idempotency_key)
    expect(again.id == handle.id and again.replayed, f"the same key gave another job: {again.id}")
    tell(console, "Again", "the same key gives the same job, and nothing runs twice")
    job = _follow(handle, console)
    (file,) = tempa.download(job, folder)
    tell(console, "File", f"{file.name}, {file.stat().st_size} bytes, SHA-256 as the job says")
    _check_volume(job, console)
    return job


def _make_splats(tempa: Client, receiver: Receiver, folder: Path, console: Console) -> JobView:
    """From a picture to splats."""
    from tempa.testing.pictures import toadstool

    picture = folder / "picture.png"
    picture.write_bytes(toadstool())
    handle = tempa.generate_splat(picture, webhook_url=receiver.url(_PICTURE))
    tell(console, "Ticket", f"202 {handle.id}: splats of picture.png, by relief-splat")
    job = _follow(handle, console)
    files = tempa.download(job, folder)
    _check_splats(job)
    told = ", ".join(f"{file.name} ({file.stat().st_size} bytes)" for file in files)
    tell(console, "Files", told)
    return job


def _check_splats(job: JobView) -> None:
    """The .ply has a record of 68 bytes for each Gaussian that was measured, behind its header."""
    assert job.result is not None
    count = job.result.measurements["gaussians"]
    size = job.result.artifacts[0].file_size_bytes
    expect(0 < size - 68 * count < 1024, f"model.ply has {size} bytes for {count} Gaussians")


def _follow(handle: JobHandle, console: Console) -> JobView:
    from tempa.cli.watch import stage_words

    began = time.monotonic()
    for event in handle.events():
        words = stage_words(event.type, event.body)
        if words and event.sequence is not None:
            show(console, f"    {time.monotonic() - began:5.2f} s  {words}")
    job = handle.wait(_JOB_SECONDS)
    tell(console, "Completed", f"{job.compute_time_ms} ms in the kernel, in a process of its own")
    return job


def _check_volume(job: JobView, console: Console) -> None:
    measured = job.result.measurements["volume"] if job.result else 0.0
    expected = flanged_tube_volume(SEED_001["parameters"])
    error = abs(measured - expected) / expected
    expect(
        error <= _RELATIVE_ERROR_MAX,
        f"the volume is {measured!r} mm3; the closed form says {expected!r} (relative error {error:.1e})",
    )
    tell(console, "Volume", f"{measured:.6f} mm3; closed form {expected:.6f}: relative error {error:.1e}")
