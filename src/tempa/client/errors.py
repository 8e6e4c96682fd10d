"""What a call can end with besides its result. One tree: catch `ClientError` to catch them all."""

# ruff: noqa: N818 - the names are promised: `except JobFailed`

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tempa.core.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tempa.client.effects import Answer, Lost
    from tempa.jobs.wire import JobView

_TYPE = "urn:tempa:problem:"
_STANDARD_MEMBERS = frozenset({"type", "title", "status", "detail", "code", "errors"})


class ClientError(Exception):
    """Base of everything the client raises on purpose."""


class Misconfigured(ClientError):
    """The client was told something it cannot work with; the message says what to change."""


class JobFailed(ClientError):
    """The job ended as `failed`. `code` is one of the published codes; `retryable`: asking again may help."""

    def __init__(self, job: JobView) -> None:
        error = job.error
        self.job = job
        self.code = error.code if error else "INTERNAL"
        self.message = error.message if error else "The server did not say why."
        self.retryable = error.retryable if error else False
        self.hint = error.hint if error else None
        self.detail: Mapping[str, Any] = error.detail if error else {}
        super().__init__(f"{job.job_id} failed with {self.code}: {self.message}")


class JobCanceled(ClientError):
    """The job ended as `canceled`."""

    def __init__(self, job: JobView) -> None:
        self.job = job
        super().__init__(f"{job.job_id} was canceled.")


class WaitTimeout(ClientError, TimeoutError):
    """The wait is over, the job is not: it goes on, and can be waited for again."""

    def __init__(self, job: JobView, timeout_seconds: float) -> None:
        self.job = job
        super().__init__(f"{job.job_id} is still {job.status} after {timeout_seconds:g} s; it goes on.")


class Corrupted(ClientError):
    """A downloaded file does not have the SHA-256 that the job names. Nothing was left in the folder."""


class TempaProblem(ClientError):
    """The server refused the call (RFC 9457).

    `slug` is the last part of the problem's type, `errors` every fault of the request by JSON
    pointer, `extra` what this kind of problem carries besides (402: a quote).
    """

    def __init__(
        self,
        status: int,
        slug: str,
        detail: str,
        errors: Sequence[Problem] = (),
        *,
        code: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self.status = status
        self.slug = slug
        self.detail = detail
        self.errors = tuple(errors)
        self.code = code or slug.upper().replace("-", "_")
        self.extra: Mapping[str, Any] = extra or {}
        super().__init__(
            "\n".join([detail, *(f"  {fault.pointer}: {fault.message}" for fault in self.errors)])
        )


class NotAuthorized(TempaProblem):
    """401 or 403. `slug` says why: `malformed-key`, `unknown-key`, `revoked-key`, `missing-scope`, ..."""


class NotReachable(TempaProblem):
    """No answer (status 0), or none but 502, 503 and 504, for as long as the call was to take."""


_KINDS = {401: NotAuthorized, 403: NotAuthorized, 502: NotReachable, 503: NotReachable, 504: NotReachable}


def not_reachable(lost: Lost) -> NotReachable:
    """The error for a call whose last try brought no answer."""
    return NotReachable(0, "not-reachable", lost.reason)


def problem_of(answer: Answer) -> TempaProblem:
    """The error for an answer that is none we can use, whoever gave it: Tempa, a proxy, a bucket."""
    kind = _KINDS.get(answer.status, TempaProblem)
    body = _read(answer.body)
    if not str(body.get("type", "")).startswith(_TYPE):
        return kind(answer.status, "unknown", _unexplained(answer))
    return kind(
        answer.status,
        str(body["type"]).removeprefix(_TYPE),
        str(body.get("detail") or body.get("title") or _unexplained(answer)),
        [_fault(entry) for entry in body.get("errors") or () if isinstance(entry, dict)],
        code=body.get("code"),
        extra={name: value for name, value in body.items() if name not in _STANDARD_MEMBERS},
    )


def unexpected(answer: Answer) -> TempaProblem:
    """The error for a 2xx answer that is not what Tempa says there."""
    detail = f"This answered {answer.status} but not as Tempa does. Is the URL that of a Tempa server?"
    return TempaProblem(answer.status, "unexpected-answer", detail)


def _read(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _unexplained(answer: Answer) -> str:
    if 300 <= answer.status < 400:
        target = answer.headers.get("location", "another address")
        return f"The server points to {target}. Use that address as the server's URL."
    return f"The server answered {answer.status} and did not say why."


def _fault(entry: Mapping[str, Any]) -> Problem:
    return Problem(str(entry.get("pointer", "")), str(entry.get("message", "")), entry.get("limit"))
