"""For those who run the server: is it alive, is it ready, how busy is it?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Response
from starlette.responses import JSONResponse

from tempa.api.auth import JobsReader
from tempa.api.operation import Told, operation
from tempa.api.parts import ApiParts, Parts
from tempa.core.errors import Refusal
from tempa.jobs.model import Status
from tempa.jobs.wire import Answer

router = APIRouter(tags=["operations"])

_FRESH = {"Cache-Control": "no-store"}


class Live(Answer):
    """The process answers."""

    status: Literal["ok"]


class Readiness(Answer):
    """Whether requests can be served, and each part of that: `ok`, or the reason why not."""

    status: Literal["ok", "unavailable"]
    parts: dict[str, str]


class Load(Answer):
    """How much there is to do in a lane."""

    lane: str
    queued: int
    running: int
    oldest_age_seconds: float


@router.get("/livez", **operation("Is it alive?", scope=None, answers={200: Told("Yes.", Live)}))
async def livez() -> Response:
    """Asks nothing of the store."""
    return JSONResponse({"status": "ok"}, headers=_FRESH)


@router.get(
    "/readyz",
    **operation(
        "Is it ready?",
        scope=None,
        answers={200: Told("Yes.", Readiness), 503: Told("No; `parts` tells why.", Readiness)},
    ),
)
async def readyz(parts: Parts) -> Response:
    """Ready means that a request would be served now. A server that is stopping is not."""
    checked = dict(await parts.ready())
    if parts.stopping.is_set():
        checked["server"] = "stopping"
    ready = all(state == "ok" for state in checked.values())
    view = {"status": "ok" if ready else "unavailable", "parts": checked}
    return JSONResponse(view, 200 if ready else 503, _FRESH)


@router.get(
    "/metrics",
    **operation(
        "Metrics", scope=None, answers={200: Told("Prometheus text format.", media_type="text/plain")}
    ),
)
async def metrics(parts: Parts) -> Response:
    """For Prometheus to scrape."""
    body, media_type = await parts.render_metrics()
    return Response(body, headers={"Content-Type": media_type, **_FRESH})


@router.get(
    "/v1/scaling/{lane}",
    **operation(
        "How busy is a lane?",
        scope="jobs:read",
        answers={200: Told("The load of the lane, over all accounts.", Load)},
        refusals=["not-found"],
    ),
)
async def scaling(
    lane: Annotated[str, Path(description="A resource class of workers, such as `cpu` or `gpu`.")],
    parts: Parts,
    _: JobsReader,
) -> Response:
    """Numbers for an autoscaler, such as KEDA's metrics-api trigger."""
    counts = await parts.jobs.counts()
    lanes = {engine.lane for engine in parts.engines.values()} | {known for _, known in counts}
    if lane not in lanes:
        raise Refusal("not-found", f"There is no lane {lane[:80]}. Lanes: {', '.join(sorted(lanes))}.")
    return JSONResponse(await _load(parts, lane, counts), headers=_FRESH)


async def _load(parts: ApiParts, lane: str, counts: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    oldest = await parts.jobs.oldest_queued(lane)
    age = 0.0 if oldest is None else max(0.0, (parts.clock.now() - oldest).total_seconds())
    return {
        "lane": lane,
        "queued": counts.get((Status.QUEUED, lane), 0),
        "running": counts.get((Status.PROCESSING, lane), 0),
        "oldest_age_seconds": age,
    }
