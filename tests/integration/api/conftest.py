"""The API on real sockets: uvicorn, the SQLite store, local files. Tests are the worker."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx2
import pytest
import uvicorn

from tempa.adapters.artifacts.local import LocalArtifacts
from tempa.adapters.meters.prometheus import PrometheusMeter
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.api.app import create_app
from tempa.api.parts import ApiParts
from tempa.core.accounts import ApiKey, digest, hint, new_secret_key
from tempa.core.addresses import check_url
from tempa.core.allowances import Allowances
from tempa.core.clock import SystemClock
from tempa.core.ids import new_id
from tempa.core.limits import Limits
from tempa.core.links import SignedLinks
from tempa.jobs.estimates import Estimates
from tempa.jobs.intake import Addresses, Intake
from tempa.jobs.model import Completed, Failed, JobError, Lease, Result, Usage
from tempa.jobs.ports import MadeFile
from tempa.settlement.calls import Calls
from tempa.settlement.post import Terms
from tempa.settlement.proof import Proofs
from tempa.settlement.quoting import Quoting
from tempa.testing.trial_engine import TrialEngine
from tempa.webhooks.endpoints import Endpoints
from tempa.webhooks.keyring import Keyring
from tempa.wiring.http_protocol import HttpBounds, bounded
from tests.integration.api.hearing import Ingress

if TYPE_CHECKING:
    from pathlib import Path

    from fastapi import FastAPI

    from tempa.jobs.model import Ending, Job

SECONDS = 10  # what no signal may take longer than
SECRET = "whsec_" + "c2VjcmV0" * 4  # the account's own
_KEY = b"k" * 32


@dataclass
class Served:
    """A running API, and the hands of a worker."""

    url: str
    app: FastAPI
    parts: ApiParts
    store: SqliteStore
    artifacts: LocalArtifacts
    secret: str
    server: uvicorn.Server
    serving: asyncio.Task[None]
    clients: list[httpx2.AsyncClient] = field(default_factory=list)

    def client(self) -> httpx2.AsyncClient:
        headers = {"Authorization": f"Bearer {self.secret}"}
        client = httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=SECONDS, trust_env=False)
        self.clients.append(client)
        return client

    async def claim(self) -> Job:
        (claimed,) = await self.store.claim("worker", ["cpu"], 1, 30.0)
        return claimed.job

    async def complete(self, job: Job, content: bytes) -> None:
        prefix = f"{job.id}.a{job.epoch}"
        folder = self.artifacts.scratch(prefix)
        (folder / "model.step").write_bytes(content)
        made = MadeFile(name="model.step", role="step", file_format="step", media_type="model/step")
        kept = await self.artifacts.keep(prefix, folder, [made])
        await self.settle(job, Completed(result=Result(artifacts=kept, measurements={}), usage=Usage()))

    async def fail(self, job: Job, code: str) -> None:
        await self.settle(job, Failed(error=JobError(code=code, message="It failed.", retryable=False)))

    async def settle(self, job: Job, ending: Ending) -> None:
        assert await self.store.settle(Lease(job.id, job.epoch), ending)

    async def stop(self) -> None:
        """As a server does on SIGTERM."""
        self.parts.stopping.set()
        self.server.should_exit = True
        async with asyncio.timeout(SECONDS):
            await self.serving


class _Announcing(uvicorn.Server):
    """Says when it serves, and leaves signals to the tests."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.serves = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.serves.set()


async def _add_key(store: SqliteStore, clock: SystemClock) -> str:
    secret = new_secret_key()
    key = ApiKey(
        id=new_id("key"),
        account="default",
        name="a key",
        hint=hint(secret),
        digest=digest(secret),
        scopes=("admin",),
        created_at=clock.now(),
    )
    await store.add_key(key)
    return secret


def _parts(store: SqliteStore, wake: InProcessWake, artifacts: LocalArtifacts, url: str) -> ApiParts:
    clock, limits, meter = SystemClock(), Limits(upload_bytes=1 << 20), PrometheusMeter()
    allowances = Allowances(store, clock, limits)
    engines = {"trial": TrialEngine(), "opencascade-brep": TrialEngine(name="opencascade-brep")}

    async def render() -> tuple[bytes, str]:
        return meter.render()

    async def ready() -> Mapping[str, str]:
        return {"store": "ok"}

    return ApiParts(
        version="0.0.0",
        intake=Intake(
            store=store,
            clock=clock,
            engines=engines,
            limits=limits,
            addresses=Addresses(),
            meter=meter,
            retention_days=30,
            allowances=allowances,
        ),
        jobs=store,
        webhooks=store,
        endpoints=Endpoints(
            store=store,
            keyring=Keyring(b"e" * 32, lambda account: [SECRET]),
            clock=clock,
            limits=limits,
            check_url=check_url,
        ),
        settlement=store,
        quoting=Quoting(store=store, treasury=None, clock=clock, lock_seconds=900),
        terms=Terms(operator="default"),
        calls=Calls(store=store, clock=clock, meter=meter, sources={}, secrets={}),
        proofs=Proofs(
            store=store, treasury=None, terms=Terms(operator="default"), clock=clock, version="0.0.0"
        ),
        keys=store,
        allowances=allowances,
        estimates=Estimates(store, clock),
        artifacts=artifacts,
        links=SignedLinks(public_url=url, keys=[_KEY], ttl_seconds=3600, clock=clock),
        link_keys=(_KEY,),
        wake=wake,
        clock=clock,
        limits=limits,
        engines=engines,
        cors_origins=(),
        render_metrics=render,
        ready=ready,
        file_retention_days=7,
        public_url=url,
    )


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    clock, wake = SystemClock(), InProcessWake()
    store = await SqliteStore.open(tmp_path / "tempa.db", clock=clock, wake=wake)
    artifacts = LocalArtifacts(tmp_path / "artifacts")
    artifacts.open()
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    parts = _parts(store, wake, artifacts, url)
    app = create_app(parts)
    http = bounded(HttpBounds())
    server = _Announcing(uvicorn.Config(app, http=http, log_config=None, access_log=False, lifespan="off"))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        async with asyncio.timeout(SECONDS):
            await server.serves.wait()
        secret = await _add_key(store, clock)
        running = Served(url, app, parts, store, artifacts, secret, server, serving)
        yield running
        for client in running.clients:
            await client.aclose()
        await running.stop()
    finally:
        serving.cancel()
        await store.close()


@pytest.fixture
def http(served: Served) -> httpx2.AsyncClient:
    return served.client()


@pytest.fixture
def ingress(served: Served) -> Ingress:
    return Ingress.of(served)
