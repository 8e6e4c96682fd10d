"""The checks of `tempa doctor`: each looks at one thing and says what it found."""

from __future__ import annotations

import logging
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal

from tempa.cli import connect
from tempa.cli.doctor_engines import look_at_triposplat
from tempa.cli.doctor_payments import look_at_payments
from tempa.cli.doctor_refunds import look_at_attestor, look_at_refunds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tempa.wiring.settings import Settings

State = Literal["ok", "warning", "fault"]

_FLUSHES = 15
_SLOW_FLUSH_SECONDS = 0.02  # 50 tickets a second for one client; group commit helps only many
_FREE_BYTES_LOW = 1 << 30
_FREE_BYTES_NONE = 64 << 20
_KERNEL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Check:
    """One finding."""

    name: str
    state: State
    finding: str

    def document(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


def run_checks(settings: Settings, folder: Path) -> list[Check]:
    """All of them, in the order in which a person would ask. One that breaks is a finding too."""
    checks: list[tuple[str, Callable[[], Check]]] = [
        ("python", check_python),
        ("sqlite", check_sqlite),
        ("pycurl", check_pycurl),
        ("kernel", check_kernel),
        ("engines", lambda: check_engines(settings)),
        ("triposplat", lambda: Check("triposplat", *look_at_triposplat(settings))),
        ("payments", lambda: Check("payments", *look_at_payments(settings))),
        ("refunds", lambda: Check("refunds", *look_at_refunds(settings))),
        ("proofs", lambda: Check("proofs", *look_at_attestor(folder))),
        ("data directory", lambda: check_folder(folder)),
        ("flush", lambda: check_flush(folder)),
        ("disk", lambda: check_disk(folder)),
        ("port", lambda: check_port(settings.server.host, settings.server.port)),
        ("server", check_server),
    ]
    return [_run(name, check) for name, check in checks]


def _run(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - a doctor reports whatever ails, and goes on
        return Check(name, "fault", f"{type(error).__name__}: {error}")


def check_python() -> Check:
    """3.11 to 3.13, on Linux."""
    fits = (3, 11) <= sys.version_info[:2] <= (3, 13) and sys.platform == "linux"
    found = f"{platform.python_version()} on {platform.system()}"
    return Check(
        "python", "ok" if fits else "warning", found + ("" if fits else "; tested are 3.11 to 3.13 on Linux")
    )


def check_sqlite() -> Check:
    """STRICT tables came with 3.37."""
    import sqlite3

    fits = sqlite3.sqlite_version_info >= (3, 37)
    return Check(
        "sqlite", "ok" if fits else "fault", sqlite3.sqlite_version + ("" if fits else "; 3.37 is needed")
    )


def check_pycurl() -> Check:
    """What sends webhooks."""
    import pycurl

    return Check("pycurl", "ok", pycurl.version)


def check_kernel() -> Check:
    """In a process of its own: a kernel that cannot be loaded may take the process with it."""
    started = time.monotonic()
    process = subprocess.run(
        [sys.executable, "-c", "import OCP.Standard"],
        capture_output=True,
        text=True,
        timeout=_KERNEL_SECONDS,
        check=False,
    )
    if process.returncode == 0:
        return Check("kernel", "ok", f"OpenCASCADE loads in {time.monotonic() - started:.1f} s")
    last = (process.stderr.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
    return Check("kernel", "fault", f"{last}. Install it: pip install 'tempa[solid]'")


def check_engines(settings: Settings) -> Check:
    """Which engines this installation would offer."""
    from tempa.wiring.plugins import load_engines, withheld_engines

    logging.getLogger("tempa").addHandler(logging.NullHandler())  # what cannot be loaded is told below
    loaded = load_engines(settings.engines)
    disabled = {name for name, switches in settings.engines.items() if not switches.enabled}
    known = loaded.keys() | withheld_engines(settings.engines).keys()
    broken = {entry.name for entry in entry_points(group="tempa.engines")} - known - disabled
    if not loaded:
        why = f"{', '.join(sorted(broken))} cannot be loaded" if broken else "none is installed and enabled"
        return Check("engines", "fault", f"{why}; every request would be refused")
    faults = f"; {', '.join(sorted(broken))} cannot be loaded" if broken else ""
    return Check("engines", "warning" if broken else "ok", ", ".join(sorted(loaded)) + faults)


def check_folder(folder: Path) -> Check:
    """Whether the server could write there, without leaving anything behind."""
    place = _existing(folder)
    with tempfile.TemporaryFile(dir=place):
        missing = "" if place == folder else f"; {folder} will be made"
        return Check("data directory", "ok", f"{place} can be written{missing}")


def check_flush(folder: Path) -> Check:
    """What a 202 costs: the time until a small write is on the disk."""
    with tempfile.TemporaryFile(dir=_existing(folder)) as file:
        times = [_flush_seconds(file.fileno()) for _ in range(_FLUSHES)]
    middle = statistics.median(times)
    state: State = "ok" if middle < _SLOW_FLUSH_SECONDS else "warning"
    return Check(
        "flush",
        state,
        f"{middle * 1000:.2f} ms (median of {_FLUSHES} fsync, slowest {max(times) * 1000:.2f})",
    )


def _flush_seconds(descriptor: int) -> float:
    started = time.monotonic()
    os.write(descriptor, bytes(4096))
    os.fsync(descriptor)
    return time.monotonic() - started


def check_disk(folder: Path) -> Check:
    """Room for results."""
    free = shutil.disk_usage(_existing(folder)).free
    state: State = "ok" if free > _FREE_BYTES_LOW else "warning" if free > _FREE_BYTES_NONE else "fault"
    return Check("disk", state, f"{free / (1 << 30):.1f} GiB free")


def check_port(host: str, port: int) -> Check:
    """Whether a server could listen there, or one of ours does already."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        if connect.answers(f"http://{host}:{port}"):
            return Check("port", "ok", f"{host}:{port} is served by Tempa")
        return Check("port", "warning", f"{host}:{port}: {error.strerror}. Say --port, or set server.port.")
    return Check("port", "ok", f"{host}:{port} is free")


def check_server() -> Check:
    """The server that the other commands would call."""
    from tempa.client import ClientError
    from tempa.client.discovery import discover

    try:
        server = discover()
    except ClientError as error:
        return Check("server", "ok", str(error))
    if connect.answers(server.url):
        return Check("server", "ok", f"{server.url} answers (known from the {server.origin})")
    return Check("server", "warning", f"{server.url} does not answer (known from the {server.origin})")


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next(place for place in (folder, *folder.parents) if place.is_dir())
