"""What deliveries and dead letters look like on the wire (CONTRACTS section 3)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from tempa.webhooks.filters import EVENT_FILTERS
from tempa.webhooks.rotation import OVERLAP_SECONDS, OVERLAP_SECONDS_MAX


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
    spent: int = Field(0, description="Of the matched: cannot be sent again, without payload or endpoint.")


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


class NoticeBody(BaseModel):
    """The body of a webhook about no job: of an endpoint, of a delivery, or a test."""

    event: str = Field(examples=["endpoint.opened"])
    type: str = Field(description="The same as `event`.")
    id: str = Field(description="The event's id: the `webhook-id` of every attempt.")
    timestamp: int = Field(description="When the event happened, Unix seconds.")
    data: dict[str, Any] = Field(description="Names at least the `endpoint_id`; of its URL only the `host`.")


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
    hint: str | None = Field(
        None, description="What to do about it: where it redirects to, what to look at; a certificate's end."
    )


class DeliveryView(BaseModel):
    """A delivery."""

    delivery_id: str
    event_id: str
    type: str
    job_id: str | None = Field(description="Null if it tells of an endpoint or of a delivery.")
    endpoint_id: str
    url: str
    status: Literal["pending", "leased", "parked", "delivered", "dead", "canceled"]
    attempt_count: int
    reason: str | None
    discard_reason: str | None = Field(None, description="Why a person gave it up.")
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
    heals: int = Field(
        0, description="Of them: sent once more by themselves when the endpoint answers again."
    )
    spent: int = Field(0, description="Of them: cannot be sent again, without payload or endpoint.")
    what_next: str


def _known(name: str) -> str:
    if name not in EVENT_FILTERS:
        raise PydanticCustomError(
            "unknown_event", "Not an event. Known: {known}", {"known": ", ".join(EVENT_FILTERS)}
        )
    return name


def _retryable(status: int) -> int:
    if status == 410:
        raise PydanticCustomError("gone", "410 disables the endpoint; it cannot be retried")
    return status


def _each_once(values: list[Any]) -> list[Any]:
    twice = next((value for index, value in enumerate(values) if value in values[:index]), None)
    if twice is not None:
        raise PydanticCustomError("repeated", "Each once; {value} is there twice", {"value": str(twice)[:80]})
    return values


_UNIQUE = {"uniqueItems": True}
EventFilters = Annotated[
    list[Annotated[str, AfterValidator(_known), Field(json_schema_extra={"enum": [*EVENT_FILTERS]})]],
    Field(
        min_length=1,
        max_length=len(EVENT_FILTERS),
        description="Which events: by name, `job.*` for those of any family, or all of a family: "
        "`cad_generation.*`. null: how jobs end.",
        json_schema_extra=_UNIQUE,
    ),
    AfterValidator(_each_once),
]
RetryStatuses = Annotated[
    list[Annotated[int, Field(ge=400, le=499), AfterValidator(_retryable)]],
    Field(
        max_length=99,
        description="Answers of 4xx that are tried again, besides 408 and 429; not 410.",
        json_schema_extra=_UNIQUE,
    ),
    AfterValidator(_each_once),
]
EndpointUrl = Annotated[
    str,
    Field(description="https to a public address; at most `url_length_max` characters (GET /v1/limits)."),
]
Description = Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
InFlight = Annotated[int, Field(ge=1, le=64, description="Attempts that are under way at once.")]
Rate = Annotated[float, Field(ge=0.001, le=1000, description="Attempts a second at most; null: any number.")]


class RegisterEndpoint(Strict):
    """Body of `POST /v1/webhooks/endpoints`."""

    url: EndpointUrl
    events: EventFilters | None = None
    description: Description = ""
    signing: Literal["hmac", "ed25519"] = "hmac"
    retry_statuses: RetryStatuses = Field(default=[])
    max_in_flight: InFlight = 4
    rate_per_second: Rate | None = None


def _without_defaults(schema: dict[str, Any]) -> None:
    """What is not given stays as it is: a default would be a lie."""
    for field in schema["properties"].values():
        field.pop("default", None)


class ChangeEndpoint(Strict):
    """Body of `PATCH /v1/webhooks/endpoints/{id}`. What is not given stays."""

    model_config = ConfigDict(json_schema_extra=_without_defaults)

    url: EndpointUrl = ""
    events: EventFilters | None = None
    description: Description = ""
    retry_statuses: RetryStatuses = Field(default=[])
    max_in_flight: InFlight = 4
    rate_per_second: Rate | None = None


class RotateSecret(Strict):
    """Body of `POST /v1/webhooks/endpoints/{id}/rotate`; may be left out."""

    overlap_seconds: float = Field(
        OVERLAP_SECONDS,
        ge=0,
        le=OVERLAP_SECONDS_MAX,
        description="How long deliveries are signed with the older secrets too.",
    )


class SecretView(BaseModel):
    """A signing secret, without itself."""

    created_at: datetime
    expires_at: datetime | None = Field(description="null: in force until it is rotated out.")


class BreakerView(BaseModel):
    """Whether an endpoint counts as down."""

    state: Literal["closed", "open"]
    failures_in_a_row: int = Field(description="Different deliveries, three at most; the third opens it.")
    failed_probes: int
    next_probe_at: datetime | None


class EndpointView(BaseModel):
    """A registered endpoint, and how it fares."""

    id: str
    endpoint_id: str = Field(description="The same as `id`.")
    url: str
    events: list[str] | None
    description: str
    signing: Literal["hmac", "ed25519"]
    retry_statuses: list[int]
    max_in_flight: int
    rate_per_second: float | None
    status: Literal["active", "paused", "disabled"]
    breaker: BreakerView
    parked_at: datetime | None = Field(description="Since when what comes is parked; null: it is not.")
    held_until: datetime | None = Field(description="Nothing is sent before; by Retry-After or the breaker.")
    pending: int = Field(description="Deliveries that wait, parked ones too.")
    secrets: list[SecretView] = Field(
        description="Newest first. Of a job's URL none: the account's own sign."
    )
    public_key: str | None = Field(description="`whpk_...`: verifies what an Ed25519 endpoint is sent.")
    created_at: datetime
    changed_at: datetime


class EndpointSecret(EndpointView):
    """An endpoint with a secret that was just made."""

    secret: str = Field(
        description="`whsec_...`, shown this once. Of an Ed25519 endpoint its public key: what signs stays."
    )


class TestSent(BaseModel):
    """A test that was asked for."""

    delivery_id: str
    event_id: str


class PublicKey(BaseModel):
    """An Ed25519 public key (RFC 8037)."""

    kty: Literal["OKP"]
    crv: Literal["Ed25519"]
    kid: str = Field(description="The key's thumbprint (RFC 7638): rotations do not change it.")
    x: str
    use: Literal["sig"]
    alg: Literal["EdDSA"]


class PublicKeys(BaseModel):
    """A JSON Web Key Set (RFC 7517)."""

    keys: list[PublicKey]
