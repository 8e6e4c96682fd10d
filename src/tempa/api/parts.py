"""What the API is given. It makes nothing itself: `wiring/` does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, Request

from tempa.core.accounts import KeyStore
from tempa.core.allowances import Allowances
from tempa.core.clock import Clock
from tempa.core.limits import Limits
from tempa.core.links import SignedLinks
from tempa.core.work import Wake
from tempa.jobs.estimates import Estimates
from tempa.jobs.intake import Intake
from tempa.jobs.ports import ArtifactStore, Engine, JobStore
from tempa.settlement.calls import Calls
from tempa.settlement.ports import SettlementStore
from tempa.settlement.post import Terms
from tempa.settlement.proof import Proofs
from tempa.settlement.quoting import Quoting
from tempa.settlement.standing import Standing
from tempa.webhooks.endpoints import Endpoints
from tempa.webhooks.ports import WebhookStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiParts:
    """The ports and settings the API works with.

    `link_keys` sign tokens: the first one signs, all of them check. `render_metrics` gives the body
    and media type of `/metrics`; `ready` gives, for every part of the server, "ok" or the reason
    why not. Set `stopping` when the server begins to stop: open streams and long polls then end,
    which a server that waits for its connections to close would otherwise wait for.
    """

    version: str
    intake: Intake
    jobs: JobStore
    webhooks: WebhookStore
    endpoints: Endpoints
    settlement: SettlementStore
    quoting: Quoting
    terms: Terms  # of payments, the operator's
    calls: Calls
    proofs: Proofs
    keys: KeyStore
    allowances: Allowances
    estimates: Estimates
    artifacts: ArtifactStore
    links: SignedLinks
    link_keys: tuple[bytes, ...]
    wake: Wake
    clock: Clock
    limits: Limits
    engines: Mapping[str, Engine]
    cors_origins: Sequence[str]
    render_metrics: Callable[[], Awaitable[tuple[bytes, str]]]
    ready: Callable[[], Awaitable[Mapping[str, str]]]
    file_retention_days: float
    public_url: str
    standing: Callable[[], Standing | None] = lambda: None  # None: payments are not configured
    refunds: bool = False  # whether they can be asked for
    stopping: asyncio.Event = field(default_factory=asyncio.Event)


async def parts_of(request: Request) -> ApiParts:
    """The parts of the app that serves this request. Async, or FastAPI would call it in a thread."""
    return cast("ApiParts", request.app.state.parts)


Parts = Annotated[ApiParts, Depends(parts_of)]
