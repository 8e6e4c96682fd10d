"""Every way Tempa says no: the closed table of job codes, and the problems at the door.

Two families of answer. A *job code* (`CODES`) is the reason a job failed, or an input
could never succeed. A *problem* (`PROBLEMS`) is an HTTP answer in the form of RFC 9457.
Both tables are closed: the reference pages are rendered from them, and a test checks that
nothing else leaves the house.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Code:
    """One row of the table of job codes.

    `retryable` speaks to the client: may asking again help? `auto` is how many times Tempa
    itself tries again inside the job's attempt budget.
    """

    meaning: str
    retryable: bool = False
    auto: int = 0
    hint: str | None = None


CODES: Mapping[str, Code] = {
    "INVALID_REQUEST": Code("The request was refused at the door."),
    "FILLET_FAILED": Code("The kernel could not build a fillet.", hint="Lower the radius named in detail."),
    "CHAMFER_FAILED": Code("The kernel could not build a chamfer.", hint="Lower the length named in detail."),
    "OFFSET_FAILED": Code("The kernel could not build an offset or shell."),
    "SWEEP_FAILED": Code("The kernel could not build a sweep or loft."),
    "INVALID_BOOLEAN": Code("A boolean operation reported errors."),
    "BOOLEAN_NO_EFFECT": Code("A boolean operation changed nothing although its operands meet."),
    "EMPTY_RESULT": Code("The result holds no solid."),
    "DISCONNECTED_RESULT": Code("The result fell into more solids than expected."),
    "NON_MANIFOLD_EDGES": Code("The result has edges that are not shared by exactly two faces."),
    "SELF_INTERSECTION": Code("The result intersects itself or is not a valid solid."),
    "VOLUME_MISMATCH": Code("The result's volume disagrees with an independent calculation."),
    "CHECK_FAILED": Code("The part was built, but one of the request's checks does not hold."),
    "IMPORT_FAILED": Code("The input file could not be read as geometry."),
    "TESSELLATION_FAILED": Code("The mesher could not triangulate the result."),
    "EXPORT_FAILED": Code("A file could not be written or does not read back the same."),
    "KERNEL_TIMEOUT": Code(
        "The attempt ran past its time limit and was killed.",
        hint="Simplify the part, or ask the operator to raise engines.<name>.timeout_seconds.",
    ),
    "DEADLINE_EXCEEDED": Code(
        "The job's deadline_seconds passed before it was finished.",
        retryable=True,
        hint="Ask again with a longer deadline_seconds.",
    ),
    "OUT_OF_MEMORY": Code(
        "The attempt passed its memory limit and was killed.",
        hint="Simplify the part, or ask the operator to raise engines.<name>.memory_bytes.",
    ),
    "KERNEL_CRASHED": Code("The kernel died of a signal.", retryable=True, auto=1),
    "WORKER_LOST": Code("The worker that ran the job stopped answering.", retryable=True, auto=1),
    "IMAGE_UNREADABLE": Code("The image could not be decoded."),
    "IMAGE_FORMAT_UNSUPPORTED": Code("The image's format is not supported."),
    "IMAGE_TOO_LARGE": Code("The image is larger than the limit."),
    "IMAGE_TOO_SMALL": Code("The image is smaller than the limit."),
    "IMAGE_ASPECT_RATIO": Code("The image's aspect ratio is outside the limit."),
    "NO_FOREGROUND": Code("The image shows nothing that stands out from its background."),
    "MASK_PROVIDER_UNAVAILABLE": Code("The matting model is not available."),
    "MODEL_NOT_INSTALLED": Code("The engine's model is not installed on this server."),
    "MODEL_CHECKSUM_MISMATCH": Code("The engine's model files do not have the pinned checksums."),
    "ENGINE_UNAVAILABLE": Code("No worker offers this engine.", hint="GET /v1/engines lists what runs here."),
    "CUDA_OUT_OF_MEMORY": Code("The GPU ran out of memory.", auto=1),
    "DEVICE_UNAVAILABLE": Code("The worker has no usable GPU.", retryable=True, auto=1),
    "NUMERICAL_FAILURE": Code("The model produced values that are not finite."),
    "DEGENERATE_OUTPUT": Code("The model produced an unusable result."),
    "SOURCE_FETCH_FAILED": Code("The file named by URL could not be fetched.", auto=2),
    "ARTIFACT_STORE_FAILED": Code("The results could not be stored.", retryable=True, auto=3),
    "RENTAL_EXPIRED": Code(
        "The GPU rental and its grace period are over.",
        retryable=True,
        hint="Rent the instance again, and ask again.",
    ),
    "INTERNAL": Code("A fault of Tempa's own; the reference names the log line.", retryable=True, auto=1),
}


class TempaError(Exception):
    """The one tree of surprises. `code` is a key of `CODES`; `message` may be shown to a client."""

    def __init__(
        self,
        code: str,
        message: str | None = None,
        *,
        retryable: bool | None = None,
        hint: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        row = CODES[code]
        self.code = code
        self.message = message or row.meaning
        self.retryable = row.retryable if retryable is None else retryable
        self.hint = row.hint if hint is None else hint
        self.detail: dict[str, Any] = dict(detail or {})
        super().__init__(f"{code}: {self.message}")


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of one request, by JSON pointer (RFC 6901), with the limit it broke if there is one."""

    pointer: str
    message: str
    limit: float | str | None = None
    code: str | None = None  # a key of `CODES`, when it is a fault of an input's content

    def as_dict(self) -> dict[str, Any]:
        """Wire form: an entry of `errors` in a problem+json body."""
        body = {"pointer": self.pointer, "message": self.message, "limit": self.limit}
        return body if self.code is None else {**body, "code": self.code}


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """One row of the table of door answers: HTTP status and title."""

    status: int
    title: str


PROBLEMS: Mapping[str, ProblemKind] = {
    "unreadable-json": ProblemKind(400, "The body is not valid JSON"),
    "malformed-http": ProblemKind(400, "This is not a request in HTTP/1.1"),
    "malformed-key": ProblemKind(401, "No API key, or one that is not in the form of an API key"),
    "unknown-key": ProblemKind(401, "This API key is not known here"),
    "revoked-key": ProblemKind(401, "This API key was revoked"),
    "not-authentic": ProblemKind(401, "The call is not the provider's, or is too old"),
    "invalid-token": ProblemKind(401, "This token is not valid here or has expired"),
    "rental-required": ProblemKind(402, "An active rental of this GPU instance is required"),
    "missing-scope": ProblemKind(403, "This API key lacks the scope the call needs"),
    "operator-only": ProblemKind(403, "Only the operator's own API keys may do this"),
    "invalid-signature": ProblemKind(403, "The link's signature is wrong or has expired"),
    "not-found": ProblemKind(404, "There is nothing here"),
    "method-not-allowed": ProblemKind(405, "This method is not allowed here"),
    "request-timeout": ProblemKind(408, "The request came too slowly"),
    "request-in-progress": ProblemKind(409, "The first request with this key is still being admitted"),
    "conflict": ProblemKind(409, "The present state does not allow this"),
    "instance-rented": ProblemKind(409, "Somebody else rents this GPU instance"),
    "instance-suspended": ProblemKind(409, "This GPU instance is suspended"),
    "gone": ProblemKind(410, "This was kept until its retention ended"),
    "body-too-large": ProblemKind(413, "The body is larger than the limit"),
    "unsupported-media-type": ProblemKind(415, "The body's media type is not accepted here"),
    "range-not-satisfiable": ProblemKind(416, "The requested range lies outside the file"),
    "invalid-request": ProblemKind(422, "The request is not valid"),
    "idempotency-key-reused": ProblemKind(422, "This Idempotency-Key was used for another request"),
    "address-not-allowed": ProblemKind(422, "The URL's address may not be called"),
    "engine-unavailable": ProblemKind(422, "This engine does not run here"),
    "too-many-requests": ProblemKind(429, "Too many requests"),
    "head-too-large": ProblemKind(431, "The request's line and headers are larger than the limit"),
    "internal": ProblemKind(500, "A fault of Tempa's own"),
    "payments-not-configured": ProblemKind(501, "This server takes no payments"),
    "store-unavailable": ProblemKind(503, "The store cannot be reached or cannot be written"),
    "treasury-unknown": ProblemKind(503, "The treasury's accounts are not known yet"),
    "keys-unavailable": ProblemKind(503, "The public keys cannot be shown"),
    "too-many-connections": ProblemKind(503, "Too many connections are open"),
}


@dataclass
class Refusal(Exception):  # noqa: N818 - a refusal is an answer, not a fault of ours
    """A request that is answered at the door. `slug` is a key of `PROBLEMS`."""

    slug: str
    detail: str
    errors: tuple[Problem, ...] = ()
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """HTTP status."""
        return PROBLEMS[self.slug].status

    def as_dict(self) -> dict[str, Any]:
        """The body of an `application/problem+json` answer (RFC 9457)."""
        return {
            "type": f"urn:tempa:problem:{self.slug}",
            "title": PROBLEMS[self.slug].title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code or self.slug.upper().replace("-", "_"),
            "errors": [problem.as_dict() for problem in self.errors],
            **self.extra,
        }


class StoreUnavailable(Exception):  # noqa: N818 - the name of the answer it becomes
    """The database cannot be reached or cannot be written; nothing was changed."""
