"""An API whose stores are in memory and whose time stands still."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from fastapi import FastAPI

from tempa.adapters.artifacts.local import LocalArtifacts
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.api.app import create_app
from tempa.api.parts import ApiParts
from tempa.core.accounts import ApiKey, digest, hint, new_secret_key
from tempa.core.addresses import check_url
from tempa.core.allowances import Allowances
from tempa.core.ids import new_id
from tempa.core.limits import Limits
from tempa.core.links import SignedLinks
from tempa.jobs.estimates import Estimates
from tempa.jobs.intake import Addresses, Intake
from tempa.jobs.model import Job, Result
from tempa.jobs.ports import MadeFile
from tempa.settlement.calls import Calls
from tempa.settlement.post import Terms
from tempa.settlement.proof import Proofs
from tempa.settlement.quoting import Quoting
from tempa.testing.clock import ManualClock
from tempa.webhooks.endpoints import Endpoints
from tempa.webhooks.keyring import Keyring
from tests.unit.api.exchange import Exchange
from tests.unit.api.fakes import FakeAccounts, FakeEngine, FakeJobs, FakeKeys, FakeWebhooks

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
LINK_KEY = b"k" * 32
SIGNING_SECRET = "whsec_" + "c2VjcmV0" * 4  # the account's own
BODY = {"parameters": {"length": 300.0}}
LIMITS = Limits(json_body_bytes=2048, upload_bytes=64 * 1024, streams_max=3)


class NoMeter:
    def count(self, name: str, amount: float = 1, **labels: str) -> None: ...
    def observe(self, name: str, seconds: float, **labels: str) -> None: ...
    def gauge(self, name: str, value: float, **labels: str) -> None: ...


@dataclass
class World:
    """The app, what lies behind it, and a client with all scopes."""

    folder: Path
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW))
    jobs: FakeJobs = field(default_factory=FakeJobs)
    keys: FakeKeys = field(default_factory=FakeKeys)
    accounts: FakeAccounts = field(default_factory=FakeAccounts)
    webhooks: FakeWebhooks = field(default_factory=FakeWebhooks)
    readiness: dict[str, str] = field(default_factory=lambda: {"store": "ok"})
    cors_origins: tuple[str, ...] = ()
    engines: dict[str, Any] = field(default_factory=lambda: {"opencascade-brep": FakeEngine()})
    limits: Limits = LIMITS

    def __post_init__(self) -> None:
        self.wake = InProcessWake(self.clock)
        self.artifacts = LocalArtifacts(self.folder)
        self.artifacts.open()
        self.parts = self._parts()
        self.app: FastAPI = create_app(self.parts)
        self.secret = self.add_key("admin")

    def _parts(self) -> ApiParts:
        stores = cast("Any", self.jobs)
        allowances = Allowances(cast("Any", self.accounts), self.clock, self.limits)
        intake = Intake(
            store=stores,
            clock=self.clock,
            engines=self.engines,
            limits=self.limits,
            addresses=Addresses(),
            meter=NoMeter(),
            retention_days=30,
            artifacts=self.artifacts,
            allowances=allowances,
        )
        return ApiParts(
            version="0.0.0",
            intake=intake,
            jobs=stores,
            webhooks=cast("Any", self.webhooks),
            endpoints=Endpoints(
                store=cast("Any", self.webhooks),
                keyring=Keyring(b"e" * 32, lambda account: [SIGNING_SECRET]),
                clock=self.clock,
                limits=self.limits,
                check_url=check_url,
            ),
            settlement=cast("Any", None),
            quoting=Quoting(store=cast("Any", None), treasury=None, clock=self.clock, lock_seconds=900),
            terms=Terms(operator="default"),
            calls=Calls(store=cast("Any", None), clock=self.clock, meter=NoMeter(), sources={}, secrets={}),
            proofs=Proofs(
                store=cast("Any", None),
                treasury=None,
                terms=Terms(operator="default"),
                clock=self.clock,
                version="0.0.0",
            ),
            keys=self.keys,
            allowances=allowances,
            estimates=Estimates(stores, self.clock),
            artifacts=self.artifacts,
            links=SignedLinks(
                public_url="http://tempa.test", keys=[LINK_KEY], ttl_seconds=3600, clock=self.clock
            ),
            link_keys=(LINK_KEY,),
            wake=self.wake,
            clock=self.clock,
            limits=self.limits,
            engines=self.engines,
            cors_origins=self.cors_origins,
            render_metrics=self._render,
            ready=self._ready,
            file_retention_days=7,
            public_url="http://tempa.test",
        )

    async def _render(self) -> tuple[bytes, str]:
        return b"tempa_jobs 1\n", "text/plain; version=0.0.4; charset=utf-8"

    async def _ready(self) -> Mapping[str, str]:
        return self.readiness

    def add_key(self, *scopes: str, account: str = "default") -> str:
        """A key's secret."""
        secret = new_secret_key()
        key = ApiKey(
            id=new_id("key"),
            account=account,
            name="a key",
            hint=hint(secret),
            digest=digest(secret),
            scopes=scopes,
            created_at=NOW,
        )
        self.keys.rows[key.id] = key
        return secret

    def client(self, *scopes: str, account: str = "default") -> httpx2.AsyncClient:
        """A client whose key has these scopes; none: all."""
        secret = self.add_key(*(scopes or ("admin",)), account=account)
        return self.bare_client({"Authorization": f"Bearer {secret}"})

    def bare_client(self, headers: Mapping[str, str] | None = None) -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(self.app)
        return httpx2.AsyncClient(transport=transport, base_url="http://tempa.test", headers=headers)

    def exchange(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes | None = b""
    ) -> Exchange:
        """A request message by message. `body=None`: the test sends it."""
        exchange = Exchange(
            self.app, method, url, {"Authorization": f"Bearer {self.secret}", **(headers or {})}
        )
        if body is not None:
            exchange.send_body(body)
        return exchange

    async def a_job(self, account: str = "default", **changes: Any) -> Job:
        """A queued job, admitted without a key."""
        request = self.parts.intake.read(BODY, frozenset({"parameters"}), "opencascade-brep")
        admission = await self.parts.intake.admit(account, "test", request, None, derive=False)
        self.jobs.rows[admission.job.id] = replace(admission.job, **changes)
        return self.jobs.rows[admission.job.id]

    async def finish(self, job: Job, content: bytes = b"solid") -> Job:
        """Complete a job with one file, `model.step`, that holds `content`."""
        prefix = f"{job.id}.a1"
        folder = self.artifacts.scratch(prefix)
        (folder / "model.step").write_bytes(content)
        made = MadeFile(name="model.step", role="step", file_format="step", media_type="model/step")
        kept = await self.artifacts.keep(prefix, folder, [made])
        result = Result(artifacts=kept, measurements={"volume": 1.0})
        self.jobs.tell(job.id, "job.started", epoch=1)
        return self.jobs.tell(job.id, "job.completed", result=result, completed_at=NOW + timedelta(seconds=2))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "artifacts")


@pytest.fixture
def make_world(tmp_path: Path) -> Callable[..., World]:
    """A world that differs: fields of `World` by name."""
    return lambda **changes: World(tmp_path / "artifacts", **changes)


@pytest.fixture
async def http(world: World) -> AsyncIterator[httpx2.AsyncClient]:
    async with world.client() as client:
        yield client
