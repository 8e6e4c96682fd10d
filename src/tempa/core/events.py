"""Events: what happened, told once, in order. SSE, the feed and webhooks are views of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

JOB_EVENTS = (
    "job.queued",
    "job.started",
    "job.stage",
    "job.retrying",
    "job.completed",
    "job.failed",
    "job.canceled",
)
TERMINAL_EVENTS = frozenset({"job.completed", "job.failed", "job.canceled"})

OPERATOR_EVENTS = (
    "endpoint.failing",
    "endpoint.opened",
    "endpoint.recovered",
    "endpoint.disabled",
    "delivery.dead",
)
"""About an account's own webhooks. Sent to endpoints that name them; nobody is told that one died."""

TEST_EVENT = "webhook.test"
"""Sent to one endpoint at its owner's wish; about no job."""

FAMILIES = ("3d_reconstruction", "cad_generation", "conversion", "inspection")
"""Webhook families: each job event of an engine is announced under its engine's family."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One row of the event log.

    `sequence` counts within the job without gaps; both are None for an event that is about no job but about
    an endpoint or a delivery (`OPERATOR_EVENTS`). `position` orders the account's feed and is
    given when the event is fanned out (None until then). `body` is what a reader of the log
    sees beside sequence, type, time and job; `announce` is what other slices need to make
    announcements of it, and is shown to nobody. Both are plain JSON, immutable.
    """

    id: str
    account: str
    job_id: str | None
    sequence: int | None
    type: str
    at: datetime
    body: Mapping[str, Any]
    announce: Mapping[str, Any] | None = None
    position: int | None = None
