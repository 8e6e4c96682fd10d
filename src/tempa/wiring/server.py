"""One process: everything opened, its roles run until a signal, everything closed."""

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
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from tempa import __version__
from tempa.adapters.meters.prometheus import PrometheusMeter
from tempa.adapters.senders.curl import CurlSender
from tempa.adapters.senders.curl.fetch import CurlFetch
from tempa.core.clock import SystemClock
from tempa.core.links import SignedLinks
from tempa.engines.host.engine_host import EngineHost
from tempa.settlement.attestation import Attestor
from tempa.webhooks.keyring import Keyring
from tempa.wiring.chain import open_guard, open_payments
from tempa.wiring.credentials import write_private
from tempa.wiring.opening import open_deployment
from tempa.wiring.parts import Parts
from tempa.wiring.plugins import load_engines, withheld_engines
from tempa.wiring.roles import ALL_ROLES, API
from tempa.wiring.serving import run

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from tempa.adapters.artifacts.local import LocalArtifacts
    from tempa.wiring.credentials import Credentials
    from tempa.wiring.deployment import Deployment
    from tempa.wiring.settings import Settings

_logger = logging.getLogger(__name__)

READY_FILE = "ready.json"
_BACKLOG = 2048
_ACCOUNTS_MAX = 4096  # whose signing secrets are kept at hand, 200 bytes each
_NAMESPACE_LETTERS = 16
_LOOPBACK = ("127.0.0.0/8", "::1/128")


@dataclass(frozen=True, slots=True)
class Ready:
    """What a started process says of itself: the ready file's content. `url`: null if it does not listen."""

    url: str | None
    api_key: str
    webhook_secret: str
    pid: int
    data_dir: str
    version: str


async def serve(
    settings: Settings,
    data_dir: Path,
    ready_file: Path | None,
    on_ready: Callable[[Ready], None],
    roles: Collection[str] = ALL_ROLES,
    *,
    listen: bool = True,
) -> None:
    """Run `roles` until SIGTERM or SIGINT, then drain and return.

    Without the API among them `listen` serves health and metrics only. Raises what `open_deployment`
    raises, and OSError when the address is taken.
    """
    if ready_file is not None and ready_file.parent != data_dir and not ready_file.parent.is_dir():
        raise FileNotFoundError(
            errno.ENOENT, "the ready file's folder does not exist", str(ready_file.parent)
        )
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):  # before anything is opened: it is closed in good order
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with open_deployment(settings, data_dir) as deployment, deployment.artifacts as artifacts:
        listener = _listen(settings.server.host, settings.server.port) if listen else None
        url = None if listener is None else _url(settings.server.host, listener)
        public_url = _public_url(settings, url if API in roles else None, mints="deliverer" in roles)
        async with open_parts(settings, deployment, artifacts, public_url) as parts:
            ready = Ready(
                url=url,
                api_key=deployment.credentials.api_key,
                webhook_secret=deployment.credentials.webhook_secret,
                pid=os.getpid(),
                data_dir=str(data_dir),
                version=__version__,
            )
            with _ready_files(ready_file, None if settings.store.shared else data_dir) as files:
                said = _Saying(lambda: _announce(ready, files, on_ready), stop)
                await run(parts, roles, listener, stop, said.announce)
            said.check()


@dataclass
class _Saying:
    """Says that we serve. If it cannot be said (a full disk), we stop as if asked to: nobody would find us.

    What was raised within the running roles would take their jobs down without handing them back.
    """

    say: Callable[[], None]
    stop: asyncio.Event
    fault: OSError | None = None

    def announce(self) -> None:
        """Say it, once we serve."""
        try:
            self.say()
        except OSError as fault:
            self.fault = fault
            self.stop.set()

    def check(self) -> None:
        """Raise what kept us from saying it."""
        if self.fault is not None:
            raise self.fault


@contextlib.contextmanager
def _ready_files(named: Path | None, data_dir: Path | None) -> Iterator[list[Path]]:
    """Where to say that we serve. What a dead process said there is gone from the start on.

    A shared data directory belongs to no single process: nothing is said in it.
    """
    files = [path for path in (named, data_dir and data_dir / READY_FILE) if path is not None]
    for path in files:
        path.unlink(missing_ok=True)
    try:
        yield files
    finally:
        for path in files:
            path.unlink(missing_ok=True)


def _public_url(settings: Settings, url: str | None, *, mints: bool) -> str:
    if settings.server.public_url:
        return settings.server.public_url
    if url is None:
        if mints:  # webhooks carry links, and nobody here knows where the API is reached
            _logger.warning("links will lead nowhere: set server.public_url to where the API is reached")
        return f"http://{settings.server.host}:{settings.server.port}"
    if not _loopback_networks(settings.server.host):
        _logger.warning("links will begin with %s: set server.public_url to what clients can reach", url)
    return url


@contextlib.asynccontextmanager
async def open_parts(
    settings: Settings, deployment: Deployment, artifacts: LocalArtifacts, public_url: str
) -> AsyncGenerator[Parts, None]:
    """The ports on top of `deployment`, each with its implementation; links begin with `public_url`."""
    clock = SystemClock()
    key = settings.links.key
    link_keys = (bytes.fromhex(key) if key else deployment.credentials.derive("links"),)
    networks = [*settings.webhooks.allow_networks, *_loopback_networks(settings.server.host)]
    host = EngineHost()
    allowed = [ip_network(network) for network in networks]
    sender = CurlSender(allow_networks=allowed)
    fetch = CurlFetch(allowed, allow_http=settings.webhooks.allow_http, user_agent=f"Tempa/{__version__}")
    store = deployment.store
    namespace = deployment.credentials.derive("payments guard").hex()[:_NAMESPACE_LETTERS]
    try:
        async with (
            open_payments(settings, store) as payments,
            open_guard(settings.payments.guard_url, namespace, clock) as guard,
        ):
            yield Parts(
                settings=settings,
                clock=clock,
                wake=deployment.wake,
                meter=PrometheusMeter(),
                jobs=store,
                webhooks=store,
                settlement=store,
                payments=payments,
                guard=guard,
                attestor=Attestor(deployment.credentials.derive("attestations")),
                keys=store,
                accounts=store,
                artifacts=artifacts,
                engines=load_engines(settings.engines),
                withheld=withheld_engines(settings.engines),
                host=host,
                sender=sender,
                fetch=fetch,
                links=SignedLinks(
                    public_url=public_url, keys=link_keys, ttl_seconds=settings.links.ttl_seconds, clock=clock
                ),
                link_keys=link_keys,
                keyring=_keyring(deployment.credentials),
                allow_networks=networks,
                public_url=public_url,
                store_writes=lambda: store.writes,
                upkeep=deployment.upkeep,
            )
    finally:
        await sender.close()
        await fetch.close()
        await host.close()


def _keyring(credentials: Credentials) -> Keyring:
    @lru_cache(_ACCOUNTS_MAX)
    def account_secrets(account: str) -> tuple[str]:
        return (credentials.signing_secret(account),)

    return Keyring(credentials.derive("endpoint secrets"), account_secrets)


def _announce(ready: Ready, ready_files: Iterable[Path], on_ready: Callable[[Ready], None]) -> None:
    text = json.dumps(asdict(ready), indent=2) + "\n"
    where = {"data_dir": ready.data_dir, "pid": ready.pid}
    if ready.url:
        _logger.info("serving at %s", ready.url, extra=where)
    else:
        _logger.info("at work", extra=where)
    for path in ready_files:
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
