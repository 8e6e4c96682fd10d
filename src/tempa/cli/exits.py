"""Exit codes, and errors in words: what happened, which limit, what to do next."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.cli.show import job_document, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tempa.client import JobCanceled, JobFailed, NotAuthorized, TempaProblem, WaitTimeout

OK = 0
FAULT = 1  # whatever has no code of its own
USAGE = 2
JOB_FAILED = 3
CANCELED = 4
NOT_REACHABLE = 5
NOT_AUTHORIZED = 6
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
EXIT_CODES = {
    OK: "what was asked was done",
    FAULT: "another fault; the message says which",
    USAGE: "what was given cannot be used: arguments, a file, settings, a request that is refused",
    JOB_FAILED: "the job failed",
    CANCELED: "the job was canceled",
    NOT_REACHABLE: "no server answers",
    NOT_AUTHORIZED: "the key may not do this, or is none",
    INTERRUPTED: "Ctrl-C; a job that was waited for goes on",
}

_SYSTEM_HINTS = {
    errno.EADDRINUSE: "Give another port, for example --port 0.",
    errno.ENOSPC: "Make room there, then do the same again.",
    errno.EDQUOT: "Make room there, then do the same again.",
}
# The data directory's own; each says what to do.
_OF_THE_DATA = frozenset({"CredentialsUnusable", "DirectoryInUse", "SchemaMismatch", "StoreUnavailable"})
# The request itself is at fault: sending it again changes nothing.
_USAGE_STATUSES = frozenset({400, 413, 415, 422})


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ends that could not do what it was asked: in words, and for programs."""

    code: int
    lines: tuple[str, ...]
    document: Mapping[str, Any] | None = None


class CommandFault(Exception):  # noqa: N818 - how a command ends, not a fault of ours
    """A command that ends here, in words of its own."""

    def __init__(self, *lines: str, code: int = FAULT, document: Mapping[str, Any] | None = None) -> None:
        self.outcome = Outcome(code, lines, document)
        super().__init__(*lines)


class UsageFault(CommandFault):
    """What was given cannot be used; the message says what would be."""

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines, code=USAGE)


def outcome_of(error: Exception) -> Outcome | None:
    """The words and the exit code for an expected error; None for a fault of our own.

    Errors are known by module and name where importing their class would be what makes a command
    slow: whoever raised one has imported it already.
    """
    if isinstance(error, CommandFault):
        return error.outcome
    name = type(error).__name__
    if name == "SettingsError":
        return Outcome(USAGE, ("The settings cannot be used:", *str(error).splitlines()))
    if name in _OF_THE_DATA:
        return Outcome(FAULT, (str(error),))
    if type(error).__module__.startswith("tempa.client"):
        return _of_client(error)
    if isinstance(error, OSError) and error.errno != errno.EPIPE:
        return Outcome(FAULT, (_of_system(error),))
    return None


def of_passing_job(error: JobFailed | JobCanceled) -> CommandFault:
    """The same for a job whose server ends with the command: nothing can be asked of it any more."""
    from tempa.client import JobFailed

    document = job_document(error.job, stays=False)
    if isinstance(error, JobFailed):
        return CommandFault(*_reasons(error), code=JOB_FAILED, document=document)
    return CommandFault(*_plain(error), code=CANCELED, document=document)


def _of_client(error: Exception) -> Outcome | None:
    """The first row that fits: subclasses stand above their bases."""
    from tempa import client

    rows: list[tuple[type[Exception], int, Callable[[Any], tuple[str, ...]]]] = [
        (client.JobFailed, JOB_FAILED, _failure),
        (client.JobCanceled, CANCELED, _plain),
        (client.WaitTimeout, FAULT, _waited),
        (client.NotAuthorized, NOT_AUTHORIZED, _unauthorized),
        (client.NotReachable, NOT_REACHABLE, _plain),
        (client.TempaProblem, FAULT, _faults),
        (client.Misconfigured, USAGE, _plain),
        (client.ClientError, FAULT, _plain),
    ]
    code, words = next((code, words) for kind, code, words in rows if isinstance(error, kind))
    is_usage = isinstance(error, client.TempaProblem) and error.status in _USAGE_STATUSES
    return Outcome(USAGE if is_usage else code, words(error), _document(error))


def _document(error: Exception) -> Mapping[str, Any] | None:
    from tempa import client

    if isinstance(error, client.JobFailed | client.JobCanceled | client.WaitTimeout):
        return job_document(error.job)
    return _problem(error) if isinstance(error, client.TempaProblem) else None


def _problem(problem: TempaProblem) -> dict[str, Any]:
    """As RFC 9457 has it; without an answer there is no status."""
    from tempa.core.errors import PROBLEMS

    kind = PROBLEMS.get(problem.slug)
    return {
        "type": f"urn:tempa:problem:{problem.slug}",
        **({"title": kind.title} if kind else {}),
        **({"status": problem.status} if problem.status else {}),
        "detail": problem.detail,
        "code": problem.code,
        "errors": [fault.as_dict() for fault in problem.errors],
        **problem.extra,
    }


def _plain(error: Exception) -> tuple[str, ...]:
    return (str(error),)


def _failure(error: JobFailed) -> tuple[str, ...]:
    again = (f"It may be asked again: tempa jobs retry {error.job.job_id}",) if error.retryable else ()
    return (*_reasons(error), *again)


def _reasons(error: JobFailed) -> tuple[str, ...]:
    lines = (str(error), error.hint, _detail(error))
    return tuple(line for line in lines if line)


def _waited(error: WaitTimeout) -> tuple[str, ...]:
    return (str(error), f"Wait on: tempa jobs wait {error.job.job_id}")


def _unauthorized(error: NotAuthorized) -> tuple[str, ...]:
    hint = "Set TEMPA_API_KEY to a key of this server that may do this; `tempa keys create` makes one there."
    return (f"{error} ({error.slug})", hint)


def _faults(problem: TempaProblem) -> tuple[str, ...]:
    faults = [f"  {fault.pointer or '(the request)'}: {fault.message}" for fault in problem.errors]
    if len(faults) == 1 and problem.errors[0].message == problem.detail:
        return (faults[0].strip(),)
    return (problem.detail, *faults)


def _detail(error: JobFailed) -> str | None:
    shown = {name: value for name, value in error.detail.items() if name != "kernel"}
    return (
        "Detail: " + ", ".join(f"{name} = {plain(value)}" for name, value in shown.items()) if shown else None
    )


def _of_system(error: OSError) -> str:
    what = error.strerror or str(error)
    where = f"{error.filename}: " if error.filename else ""
    hint = _SYSTEM_HINTS.get(error.errno or 0, "")
    return f"{where}{what}.{hint and ' '}{hint}"
