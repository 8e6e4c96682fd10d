"""What jobs look like on the wire: request options and answers (CONTRACTS section 2).

Clients see these models; the OpenAPI document is made of them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from tempa.core.events import FAMILIES

ANNOUNCED = ("started", "completed", "failed", "canceled")
WEBHOOK_EVENTS = tuple(f"{family}.{verb}" for family in (*FAMILIES, "job") for verb in ANNOUNCED)
"""What `webhook_events` may name; `job.*` stands for whichever family the job is of."""


class Strict(BaseModel):
    """Base of request models: nothing unknown, nothing coerced, nothing infinite."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _some_each_once(names: list[str]) -> list[str]:
    if not names:  # not the default three: whoever sends an empty list wants none, and no URL says that
        raise PydanticCustomError("empty", "Name at least one event, or leave it out")
    twice = next((name for index, name in enumerate(names) if name in names[:index]), None)
    if twice is not None:
        raise PydanticCustomError("repeated", "Each event once; {name} is there twice", {"name": twice[:80]})
    return names


# What an entry may be is checked at the door, which names the entries that are none.
EventNames = Annotated[
    list[Annotated[str, Field(json_schema_extra={"enum": [*WEBHOOK_EVENTS]})]],
    Field(max_length=len(WEBHOOK_EVENTS), json_schema_extra={"minItems": 1, "uniqueItems": True}),
    AfterValidator(_some_each_once),
]


class JobOptions(Strict):
    """What every job takes, whatever its engine."""

    webhook_url: str | None = Field(
        None,
        description="Where to POST this job's events. https to a public address; "
        "at most `url_length_max` characters (GET /v1/limits).",
    )
    webhook_events: EventNames | None = Field(
        None,
        description="Which events to send there, each once; at least one. "
        "Default: completed, failed and canceled.",
    )
    deadline_seconds: float | None = Field(
        None,
        gt=0,
        description="Give up (DEADLINE_EXCEEDED) when the job is not finished this long after admission; "
        "at most `deadline_seconds_max` (GET /v1/limits).",
    )
    priority: int = Field(5, ge=0, le=9, description="Higher runs first.")
    tags: dict[str, str] = Field(
        default_factory=dict, description="Your own labels; returned in the job and its webhooks."
    )
    gpu_instance_id: str | None = Field(
        None,
        max_length=64,
        description="Bind the job to this GPU instance. Needs an active rental (else 402, with a quote), and "
        "fails with RENTAL_EXPIRED when the rental and its grace end first.",
    )
    cache: Literal["use", "bypass"] = Field(
        "use", description="`bypass` runs the kernel even when the same work was done before."
    )


class Tolerance(Strict):
    """How closely meshes follow the exact surface."""

    linear: float | None = Field(None, ge=1e-3, le=1e3, description="Largest distance from the surface, mm.")
    angular: float | None = Field(
        None, ge=1, le=90, description="Largest angle between neighbouring facets, degrees."
    )


Coordinate = Annotated[float, Field(ge=-1e19, le=1e19)]
Corner = Annotated[list[Coordinate], Field(min_length=3, max_length=3)]
Box = Annotated[list[Corner], Field(min_length=2, max_length=2)]


class Checks(Strict):
    """What must hold for the part; one that does not fails the job with CHECK_FAILED."""

    solids: int | None = Field(None, ge=1, le=1_000_000, description="Number of solids.")
    volume_min: float | None = Field(None, ge=0, le=1e19, description="mm3")
    volume_max: float | None = Field(None, ge=0, le=1e19, description="mm3")
    bounding_box: Box | None = Field(
        None, description="The box the part must lie in: [[x,y,z],[x,y,z]], mm, the least corner first."
    )
    watertight: bool | None = Field(None, description="Whether every mesh edge has two faces.")


class GenerateModel(JobOptions):
    """Body of `POST /v1/models/generate`."""

    engine: str = Field("opencascade-brep", description="GET /v1/engines lists them.")
    template: str | None = Field(None, description="GET /v1/templates lists them. Default: flanged-tube@1.")
    tree: dict[str, Any] | None = Field(None, description="A feature tree instead of a template.")
    parameters: dict[str, Any] | None = Field(None, description="The template's parameters, lengths in mm.")
    export_format: str | None = Field(None, description="One format; the one-element form of the next.")
    export_formats: list[str] | None = Field(
        None,
        min_length=1,
        json_schema_extra={"uniqueItems": True},
        description="step, brep, stl, glb, 3mf; each once. Default: step.",
    )
    tolerance: Tolerance | None = None
    checks: Checks | None = None


class FileReference(Strict):
    """A file that is stored here: an upload's `file_id`, or `job_id` and the `name` of one of its results."""

    file_id: str | None = Field(None, description="POST /v1/files gives one.")
    job_id: str | None = Field(None, description="A completed job of this account.")
    name: str | None = Field(None, description="The name of one of its artifacts.")


class Preview(Strict):
    """Which pictures to make of the result."""

    width: int = Field(512, ge=64, le=2048, description="px")
    height: int = Field(512, ge=64, le=2048, description="px")
    turntable_frames: int = Field(0, ge=0, le=72, description="Frames of a turn around it; 0: no turntable.")


def _url(of: str) -> Any:
    return Field(None, description=f"Where to fetch {of} from, by GET. https to a public address.")


def _base64(of: str) -> Any:
    return Field(None, description=f"The bytes of {of} (RFC 4648), as far as a JSON body may be long.")


def _artifact(of: str) -> Any:
    return Field(None, description=f"{of} that is stored here.")


_PARAMETERS = "The engine's own; GET /v1/engines has their schema."
_FORMAT = "One format; the one-element form of the next."


class GenerateSplat(JobOptions):
    """Body of `POST /v1/splats/generate`: one picture, or one mesh, given in one way."""

    engine: str = Field("relief-splat", description="GET /v1/engines lists them.")
    image_url: str | None = _url("the picture")
    image_base64: str | None = _base64("the picture")
    image_artifact: FileReference | None = _artifact("A picture")
    depth_url: str | None = _url("the picture's depth")
    depth_base64: str | None = _base64("the picture's depth")
    depth_artifact: FileReference | None = _artifact("The picture's depth")
    mesh_url: str | None = _url("the mesh")
    mesh_base64: str | None = _base64("the mesh")
    mesh_artifact: FileReference | None = _artifact("A mesh, such as a CAD job's result,")
    parameters: dict[str, Any] | None = Field(None, description=_PARAMETERS)
    export_format: str | None = Field(None, description=_FORMAT)
    export_formats: list[str] | None = Field(
        None,
        min_length=1,
        json_schema_extra={"uniqueItems": True},
        description="ply, spz, splat, ...; each once. Default: ply and spz.",
    )
    preview: Preview | None = Field(None, description="A picture of 512 x 512 px is always made.")


class Convert(JobOptions):
    """Body of `POST /v1/convert`: one file, given in one way, and what to make of it."""

    engine: str = Field("splat-convert", description="GET /v1/engines lists them.")
    file_url: str | None = _url("the file")
    file_base64: str | None = _base64("the file")
    file_artifact: FileReference | None = _artifact("A file")
    parameters: dict[str, Any] | None = Field(None, description=_PARAMETERS)
    export_format: str | None = Field(None, description=_FORMAT)
    export_formats: list[str] | None = Field(
        None,
        min_length=1,
        json_schema_extra={"uniqueItems": True},
        description="What to make of it; each once. Default: ply.",
    )
    preview: Preview | None = Field(None, description="A picture of 512 x 512 px is always made.")


class Answer(BaseModel):
    """Base of answers. Clients must ignore fields they do not know."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Ticket(Answer):
    """The answer to a new request: 202, with `Location`."""

    job_id: str
    status: str
    created_at: datetime


class ArtifactView(Answer):
    """A result file."""

    name: str
    role: str
    file_format: str
    media_type: str
    file_size_bytes: int
    sha256: str
    download_url: str
    expires_at: datetime


class ResultView(Answer):
    """The first artifact in short, then all of them."""

    file_format: str
    file_size_bytes: int
    download_url: str | None = Field(description="null once the files were removed.")
    expires_at: datetime | None = Field(description="null once the files were removed.")
    artifacts: list[ArtifactView] = Field(description="Empty once the files were removed.")
    measurements: dict[str, Any]


class ErrorView(Answer):
    """Why a job failed."""

    code: str
    message: str
    retryable: bool
    hint: str | None = None
    detail: dict[str, Any] = Field(default_factory=dict)


class ProgressView(Answer):
    """How far a job is."""

    stage: str
    fraction: float | None = None
    queue_position: int | None = Field(
        None, description="While it waits: how many of the account's jobs in its lane go first."
    )
    eta_seconds: float | None = Field(
        None, description="Until it ends, by the median of past jobs; null when there are none."
    )
    eta_range_seconds: tuple[float, float] | None = Field(
        None, description="The same by their first and last decile."
    )
    preview_url: str | None = Field(
        None, description="A picture of what is being made, as long as it is: of engines that draw one."
    )


class JobView(Answer):
    """`GET /v1/jobs/{job_id}`."""

    job_id: str
    status: Literal["queued", "processing", "completed", "failed", "canceled"]
    created_at: datetime
    started_at: datetime | None = None
    completed_at: datetime | None = None
    result: ResultView | None = None
    error: ErrorView | None = None
    engine: str
    gpu_instance_id: str | None = Field(None, description="The rented GPU instance it is bound to.")
    sequence: int
    attempt: int
    cached: bool
    progress: ProgressView
    compute_time_ms: int
    peak_rss_bytes: int
    deadline_at: datetime | None = None
    retained_until: datetime
    removed: bool = Field(False, description="Its files are gone: by DELETE, or their retention has ended.")
    tags: dict[str, str]


class CancelView(Answer):
    """The answer to a cancel."""

    job_id: str
    status: str
    outcome: Literal["canceled", "cancellation_requested", "already_finished"]


class EventView(Answer):
    """One event, in a job's log or in the account's feed."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: str
    sequence: int | None = Field(description="Within its job. null: it is about no job, but about a webhook.")
    type: str
    at: datetime
    job_id: str | None
    position: int | None = None


class FileView(Answer):
    """An uploaded file."""

    file_id: str
    sha256: str
    file_size_bytes: int
    expires_at: datetime


Item = TypeVar("Item")


class Page(Answer, Generic[Item]):
    """A list. `next_cursor` is null at its end."""

    items: list[Item]
    next_cursor: str | None = None


class TokenView(Answer):
    """A read-only token for one job, for browsers."""

    token: str
    expires_at: datetime
