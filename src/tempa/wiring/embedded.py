"""One process, all roles: SQLite, local files, kernels in child processes. What `tempa up` runs."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import os
import signal
import socket
from dataclasses import asdict, dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from tempa import __version__
from tempa.adapters.artifacts.local import LocalArtifacts
from tempa.adapters.meters.prometheus import PrometheusMeter
from tempa.adapters.senders.curl import CurlSender
from tempa.adapters.stores.sqlite.lock import DirectoryLock
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.accounts import DEFAULT_ACCOUNT, SCOPES, ApiKey, digest, hint
from tempa.core.clock import SystemClock
from tempa.core.ids import new_id
from tempa.core.links import SignedLinks
from tempa.engines.host.engine_host import EngineHost
from tempa.wiring.credentials import Credentials, load_credentials, write_private
from tempa.wiring.parts import Parts
from tempa.wiring.plugins import load_engines
from tempa.wiring.serving import run

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from tempa.wiring.settings import Settings

_logger = logging.getLogger(__name__)

DATABASE_FILE = "tempa.db"
READY_FILE = "ready.json"
_BACKLOG = 2048
_LOOPBACK = ("127.0.0.0/8", "::1/128")


@dataclass(frozen=True, slots=True)
class Ready:
    """What a started server says of itself: the ready file's content."""

    url: str
    api_key: str
    webhook_secret: str
    pid: int
    data_dir: str
    version: str


async def serve(
    settings: Settings, data_dir: Path, ready_file: Path | None, on_ready: Callable[[Ready], None]
) -> None:
    """Serve until SIGTERM or SIGINT, then drain and return.

    Raises `DirectoryInUse` when another server holds the directory, OSError when the address is
    taken.
    """
    if ready_file is not None and not ready_file.parent.is_dir():
        raise FileNotFoundError(
            errno.ENOENT, "the ready file's folder does not exist", str(ready_file.parent)
        )
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):  # before anything is opened: it is closed in good order
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with open_data_dir(settings, data_dir) as opened:
        listener = _listen(settings.server.host, settings.server.port)
        url = _url(settings.server.host, listener)
        if not settings.server.public_url and not _loopback_networks(settings.server.host):
            _logger.warning("links will begin with %s: set server.public_url to what clients can reach", url)
        async with (
            _open_artifacts(settings, data_dir) as artifacts,
            _open_parts(settings, opened, artifacts, settings.server.public_url or url) as parts,
        ):
            credentials = opened.credentials
            ready = Ready(
                url=url,
                api_key=credentials.api_key,
                webhook_secret=credentials.webhook_secret,
                pid=os.getpid(),
                data_dir=str(data_dir),
                version=__version__,
            )
            await opened.store.void_leases()
            await opened.store.void_delivery_leases()
            try:
                await run(parts, listener, stop, lambda: _announce(ready, data_dir, ready_file, on_ready))
            finally:
                (data_dir / READY_FILE).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class OpenedData:
    """A data directory whose lock we hold."""

    store: SqliteStore
    wake: InProcessWake
    credentials: Credentials


@contextlib.asynccontextmanager
async def open_data_dir(settings: Settings, data_dir: Path) -> AsyncGenerator[OpenedData, None]:
    """Take the directory's lock and open its store, migrated. Raises `DirectoryInUse`."""
    await asyncio.to_thread(data_dir.mkdir, mode=0o700, parents=True, exist_ok=True)
    with DirectoryLock(data_dir):
        credentials = load_credentials(data_dir)
        wake = InProcessWake()
        path = _local_path(settings.store.url, "sqlite://") or data_dir / DATABASE_FILE
        store = await SqliteStore.open(path, clock=SystemClock(), wake=wake)
        try:
            await _ensure_first_key(store, credentials)
            yield OpenedData(store, wake, credentials)
        finally:
            await store.close()


@contextlib.asynccontextmanager
async def _open_artifacts(settings: Settings, data_dir: Path) -> AsyncGenerator[LocalArtifacts, None]:
    """One server a folder, whatever its data directory: each would sweep away what only the other knows."""
    artifacts = LocalArtifacts(_local_path(settings.artifacts.url, "file://") or data_dir / "artifacts")
    with DirectoryLock(await asyncio.to_thread(artifacts.make_own)):
        await asyncio.to_thread(artifacts.open)
        yield artifacts


@contextlib.asynccontextmanager
async def _open_parts(
    settings: Settings, opened: OpenedData, artifacts: LocalArtifacts, public_url: str
) -> AsyncGenerator[Parts, None]:
    clock = SystemClock()
    key = settings.links.key
    link_keys = (bytes.fromhex(key) if key else opened.credentials.derive("links"),)
    networks = [*settings.webhooks.allow_networks, *_loopback_networks(settings.server.host)]
    host = EngineHost()
    sender = CurlSender(allow_networks=[ip_network(network) for network in networks])
    try:
        yield Parts(
            settings=settings,
            clock=clock,
            wake=opened.wake,
            meter=PrometheusMeter(),
            jobs=opened.store,
            webhooks=opened.store,
            keys=opened.store,
            artifacts=artifacts,
            engines=load_engines(settings.engines),
            host=host,
            sender=sender,
            links=SignedLinks(
                public_url=public_url, keys=link_keys, ttl_seconds=settings.links.ttl_seconds, clock=clock
            ),
            link_keys=link_keys,
            webhook_secrets={DEFAULT_ACCOUNT: (opened.credentials.webhook_secret,)},
            allow_networks=networks,
            public_url=public_url,
            store_writes=lambda: opened.store.writes,
        )
    finally:
        await sender.close()
        await host.close()


async def _ensure_first_key(store: SqliteStore, credentials: Credentials) -> None:
    stored = digest(credentials.api_key)
    if await store.key_by_digest(stored) is None:
        first = ApiKey(
            id=new_id("key"),
            account=DEFAULT_ACCOUNT,
            name="first key",
            hint=hint(credentials.api_key),
            digest=stored,
            scopes=SCOPES,
            created_at=SystemClock().now(),
        )
        await store.add_key(first)


def _announce(
    ready: Ready, data_dir: Path, ready_file: Path | None, on_ready: Callable[[Ready], None]
) -> None:
    text = json.dumps(asdict(ready), indent=2) + "\n"
    _logger.info("serving at %s", ready.url, extra={"data_dir": ready.data_dir, "pid": ready.pid})
    for path in {data_dir / READY_FILE, *([ready_file] if ready_file else [])}:
        write_private(path, text)
    with contextlib.suppress(BrokenPipeError):  # nobody reads what is printed: no reason not to serve
        on_ready(ready)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    listener.setblocking(False)
    return listener


def _url(host: str, listener: socket.socket) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{shown}:{listener.getsockname()[1]}"


def _loopback_networks(host: str) -> tuple[str, ...]:
    """A server on loopback may call loopback: nobody else can ask it to."""
    if host == "localhost":
        return _LOOPBACK
    try:
        return _LOOPBACK if ip_address(host).is_loopback else ()
    except ValueError:
        return ()


def _local_path(url: str, scheme: str) -> Path | None:
    return Path(unquote(url.removeprefix(scheme))) if url else None
