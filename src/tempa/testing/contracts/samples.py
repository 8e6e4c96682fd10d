"""Values that the suites put into a store: all fields filled, so that none can be lost unseen."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tempa.core.ids import new_id
from tempa.jobs.model import (
    Canceled,
    Completed,
    Failed,
    JobError,
    NewJob,
    Released,
    Request,
    Reservation,
    Result,
    Retried,
    StoredArtifact,
    Usage,
)
from tempa.webhooks.model import AttemptOutcome, DeadReason, DeliveryStatus, Next

if TYPE_CHECKING:
    from tempa.core.clock import Clock
    from tempa.jobs.model import Ending

ACCOUNT = "acme"
OTHER_ACCOUNT = "globex"
LANE = "cpu"
LEASE_SECONDS = 30.0
ROUTE = "/v1/models/generate"
DAY_SECONDS = 24 * 3600.0

RESULT = Result(
    artifacts=(
        StoredArtifact(
            name="model.step",
            role="step",
            file_format="step",
            media_type="model/step",
            size_bytes=36_912,
            sha256="ab" * 32,
            key="cad_1.a1/model.step",
        ),
    ),
    measurements={
        "volume": 2801746.16196747,
        "solids": 1,
        "bounding_box": [[-60.25, -60.25, 0], [60, 60, 300]],
    },
)
USAGE = Usage(compute_time_ms=12, peak_rss_bytes=91_000_000)
BAD_FILLET = JobError(
    code="FILLET_FAILED",
    message="The kernel could not build the fillet „Außenkante“.",
    retryable=False,
    hint="Lower the radius.",
    detail={"feature": "rim", "limit": 37.749},
)
WORKER_LOST = JobError(code="WORKER_LOST", message="The worker stopped answering.", retryable=True)
TOO_LATE = JobError(code="DEADLINE_EXCEEDED", message="The deadline passed.", retryable=True)

COMPLETED = Completed(result=RESULT, usage=USAGE)
ENDINGS: tuple[Ending, ...] = (
    COMPLETED,
    Failed(error=BAD_FILLET, usage=USAGE),
    Retried(error=WORKER_LOST, delay_seconds=0.0, crash=True, usage=USAGE),
    Canceled(usage=USAGE),
    Released(),
)

DELIVERED = Next(status=DeliveryStatus.DELIVERED)
EXHAUSTED = Next(status=DeliveryStatus.DEAD, reason=DeadReason.EXHAUSTED)
REFUSED = Next(status=DeliveryStatus.DEAD, reason=DeadReason.REFUSED)


def a_request(**changes: Any) -> Request:
    """A request as intake makes it."""
    fields: dict[str, Any] = {
        "engine": "opencascade-brep",
        "engine_version": "8.0.1-1",
        "kind": "cad",
        "family": "cad_generation",
        "model": "opencascade-brep",
        "lane": LANE,
        "work": {"template": "flanged-tube@1", "parameters": {"length": 300.0, "holes": [6, None, True]}},
        "webhook_url": "https://hooks.example/tempa",
        "webhook_events": ("job.completed", "job.failed"),
        "tags": {"order": "A-17", 'odd "key.$[0]': "ä"},
    }
    return Request(**(fields | changes))


def a_key(
    key: str = "k1", *, derived: bool = False, fingerprint: str = "f1", route: str = ROUTE
) -> Reservation:
    """A reservation."""
    return Reservation(route=route, key=key, derived=derived, fingerprint=fingerprint)


def a_new_job(
    clock: Clock,
    *,
    account: str = ACCOUNT,
    key: Reservation | None = None,
    retention_days: float = 30.0,
    work_key: str | None = None,
    queued_max: int | None = None,
    **request: Any,
) -> NewJob:
    """An admission, now. `request` changes the request."""
    asked, now = a_request(**request), clock.now()
    deadline = asked.deadline_seconds
    return NewJob(
        id=new_id(asked.kind),
        event_id=new_id("evt"),
        account=account,
        request=asked,
        reservation=key,
        created_at=now,
        deadline_at=None if deadline is None else now + timedelta(seconds=deadline),
        retained_until=now + timedelta(days=retention_days),
        work_key=work_key,
        queued_max=queued_max,
    )


def retried(delay_seconds: float = 0.0, *, crash: bool = False) -> Retried:
    """An attempt that failed and may be followed by another one."""
    return Retried(error=WORKER_LOST, delay_seconds=delay_seconds, crash=crash, usage=USAGE)


def pending(delay_seconds: float = 0.0, hold_seconds: float = 0.0) -> Next:
    """A delivery that is tried again."""
    return Next(status=DeliveryStatus.PENDING, delay_seconds=delay_seconds, hold_seconds=hold_seconds)


def an_outcome(
    outcome: str = "retry", http_status: int | None = 503, error: str | None = None
) -> AttemptOutcome:
    """What an attempt came to."""
    return AttemptOutcome(
        outcome=outcome,
        http_status=http_status,
        error=error,
        duration_ms=41,
        timings={"name_lookup": 0.001, "connect": 0.002, "total": 0.041},
        body_sha256="cd" * 32,
        response_excerpt=b"\x00busy \xff",
        hint="redirects_to /é",
    )
