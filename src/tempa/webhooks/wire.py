"""What deliveries and dead letters look like on the wire (CONTRACTS section 3)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    """Base of request models."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


Ids = Annotated[list[str], Field(min_length=1, max_length=1000)]


class Redrive(Strict):
    """Body of `POST /v1/webhooks/dead-letters/redrive`. At least one condition; all given ones hold."""

    delivery_ids: Ids | None = None
    endpoint_id: str | None = Field(None, max_length=64)
    group: str | None = Field(None, max_length=64)
    since: str | None = Field(None, description="RFC 3339: only those that died at or after it.")
    dry_run: bool = Field(False, description="Count only; change nothing.")
    rate_per_second: float | None = Field(None, ge=0.001, le=1000, description="Default: all at once.")


class Discard(Strict):
    """Body of `POST /v1/webhooks/dead-letters/discard`."""

    delivery_ids: Ids
    reason: str = Field(min_length=1, max_length=500)


class Redriven(BaseModel):
    """The answer to a re-drive."""

    matched: int
    redriven: int


class Discarded(BaseModel):
    """The answer to a discard."""

    discarded: int


class WebhookData(BaseModel):
    """`data` of a job's webhook."""

    model_config = ConfigDict(extra="allow")

    job_id: str
    status: str
    model: str
    tags: dict[str, str]


class WebhookBody(BaseModel):
    """The body of a webhook."""

    event: str = Field(examples=["cad_generation.completed"])
    type: str = Field(description="The same as `event`.")
    id: str = Field(description="The event's id: the `webhook-id` of every attempt.")
    timestamp: int = Field(description="When the event happened, Unix seconds.")
    data: WebhookData


class AttemptView(BaseModel):
    """One attempt on record."""

    attempt: int
    started_at: datetime
    outcome: str | None
    http_status: int | None
    error: str | None
    duration_ms: int | None
    timings: dict[str, Any]
    body_sha256: str | None
    response_excerpt: str


class DeliveryView(BaseModel):
    """A delivery."""

    delivery_id: str
    event_id: str
    type: str
    job_id: str
    endpoint_id: str
    url: str
    status: Literal["pending", "leased", "parked", "delivered", "dead", "canceled"]
    attempt_count: int
    reason: str | None
    what_next: str
    created_at: datetime
    next_attempt_at: datetime | None
    finished_at: datetime | None


class DeliveryRecord(DeliveryView):
    """A delivery with all its attempts."""

    attempts: list[AttemptView]


class DeadGroupView(BaseModel):
    """Dead letters of one URL and one reason."""

    group: str
    url: str
    endpoint_id: str
    reason: str
    count: int
    oldest: datetime
    newest: datetime
    last_http_status: int | None
    last_error: str | None
    what_next: str
