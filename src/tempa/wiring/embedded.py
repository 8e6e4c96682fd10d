"""One process, all roles: SQLite, local files, kernels in child processes. What `tempa up` runs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
from dataclasses import asdict, dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import uvicorn

from tempa import __version__
from tempa.adapters.artifacts.local import LocalArtifacts
from tempa.adapters.meters.prometheus import PrometheusMeter
from tempa.adapters.senders.curl import CurlSender
from tempa.adapters.stores.sqlite.lock import DirectoryLock
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.api.app import create_app
from tempa.api.parts import ApiParts
from tempa.core.accounts import DEFAULT_ACCOUNT, SCOPES, ApiKey, digest, hint
from tempa.core.clock import SystemClock
from tempa.core.ids import new_id
from tempa.core.links import SignedLinks
from tempa.engines.host.engine_host import EngineHost
from tempa.jobs.intake import Addresses, Intake
from tempa.wiring.credentials import Credentials, load_credentials, write_private
from tempa.wiring.parts import Parts
from tempa.wiring.plugins import load_engines
from tempa.wiring.roles import all_roles, run_roles

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping

    from tempa.wiring.settings import Settings

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

    @property
    def console_url(self) -> str:
        """Where people look at it."""
        return f"{self.url}/console"


async def serve(
    settings: Settings, data_dir: Path, ready_file: Path | None, on_ready: Callable[[Ready], None]
) -> None:
    """Serve until SIGTERM or SIGINT, then drain and return.

    Raises `DirectoryInUse` when another server holds the directory, OSError when the address is
    taken.
    """
    async with open_data_dir(settings, data_dir) as opened:
        listener = _listen(settings.server.host, settings.server.port)
        url = _url(settings.server.host, listener)
        async with _open_parts(settings, data_dir, opened, settings.server.public_url or url) as parts:
            credentials = opened.credentials
            ready = Ready(
                url=url,
                api_key=credentials.api_key,
                webhook_secret=credentials.webhook_secret,
                pid=os.getpid(),
                data_dir=str(data_dir),
                version=__version__,
            )
            await _run(parts, listener, lambda: _announce(ready, data_dir, ready_file, on_ready))


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
async def _open_parts(
    settings: Settings, data_dir: Path, opened: OpenedData, public_url: str
) -> AsyncGenerator[Parts, None]:
    clock = SystemClock()
    artifacts = LocalArtifacts(_local_path(settings.artifacts.url, "file://") or data_dir / "artifacts")
    artifacts.open()
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


async def _run(parts: Parts, listener: socket.socket, announce: Callable[[], None]) -> None:
    """Void what the dead instance held, then run the API and every role until a signal."""
    await parts.jobs.void_leases()
    await parts.webhooks.void_delivery_leases()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = _Server(_uvicorn_config(parts, stop), announce)
    async with asyncio.TaskGroup() as group:
        group.create_task(run_roles(all_roles(parts), stop))
        group.create_task(server.serve(sockets=[listener]))
        await stop.wait()
        server.should_exit = True


def _uvicorn_config(parts: Parts, stop: asyncio.Event) -> uvicorn.Config:
    return uvicorn.Config(
        create_app(_api_parts(parts, stop)),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=max(1, round(parts.settings.server.drain_seconds)),
    )


def _api_parts(parts: Parts, stop: asyncio.Event) -> ApiParts:
    settings = parts.settings
    intake = Intake(
        store=parts.jobs,
        clock=parts.clock,
        engines=parts.engines,
        limits=settings.limits,
        addresses=Addresses(
            allow_networks=tuple(ip_network(network) for network in parts.allow_networks),
            allow_http=settings.webhooks.allow_http,
        ),
        meter=parts.meter,
        retention_days=settings.jobs.retention_days,
    )
    return ApiParts(
        version=__version__,
        intake=intake,
        jobs=parts.jobs,
        webhooks=parts.webhooks,
        keys=parts.keys,
        artifacts=parts.artifacts,
        links=parts.links,
        link_keys=parts.link_keys,
        wake=parts.wake,
        clock=parts.clock,
        limits=settings.limits,
        engines=parts.engines,
        cors_origins=settings.server.cors_origins,
        render_metrics=lambda: _render_metrics(parts),
        ready=lambda: _readiness(parts),
        file_retention_days=settings.jobs.file_retention_days,
        public_url=parts.public_url,
        stopping=stop,
    )


class _Server(uvicorn.Server):
    """uvicorn with our signals (ours drain the roles too) and a call once it accepts requests."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._announce()


def _announce(
    ready: Ready, data_dir: Path, ready_file: Path | None, on_ready: Callable[[Ready], None]
) -> None:
    text = json.dumps(asdict(ready), indent=2) + "\n"
    for path in {data_dir / READY_FILE, *([ready_file] if ready_file else [])}:
        write_private(path, text)
    on_ready(ready)


async def _readiness(parts: Parts) -> Mapping[str, str]:
    try:
        await parts.jobs.counts()
    except Exception as error:  # noqa: BLE001 - whatever ails the store, the answer is "not ready"
        return {"store": type(error).__name__}
    return {"store": "ok", "engines": "ok" if parts.engines else "none can be loaded"}


async def _render_metrics(parts: Parts) -> tuple[bytes, str]:
    """Counters have counted as things happened; gauges, and the store's own counts, are read now."""
    for (status, lane), count in (await parts.jobs.counts()).items():
        parts.meter.gauge("tempa_jobs", count, status=status, lane=lane)
    for status, count in (await parts.webhooks.delivery_counts()).items():
        parts.meter.gauge("tempa_webhook_deliveries", count, status=status)
    return parts.meter.render()


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
