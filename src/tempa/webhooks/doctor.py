"""The examination of a receiver: what is played to it, and what its answers are worth. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Literal

from tempa.webhooks.advice import against_taking, for_taking
from tempa.webhooks.signing import webhook_headers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tempa.webhooks.ports import Answer

State = Literal["pass", "warn", "fail"]
Headers = tuple[tuple[str, str], ...]

_LARGE_BYTES = 200_000
_STALE_SECONDS = 3600
_CLOCK_SECONDS_MAX = 30.0  # of the 300 that verifiers allow by default, and `Date` has whole seconds
_CERTIFICATE_DAYS_MIN = 21.0  # renewed at 30 by most; less means that it failed
_SLOW_SECONDS = 5.0  # half of the deadline that a server sets by default
_UNICODE = 'roda gigi \u00f8120 \u2014 \u6e2c\u8a66 \U0001f600 e\u0301 \u2028 \u202e \\ " / <&>'
_FORGERIES = frozenset({"tampered", "wrong-key", "unsigned"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is played: a body, how it is signed, how often it comes, and what should become of it."""

    name: str
    wants: str
    body: bytes
    event_id: str
    signed: bytes | None  # what the signature is over, the body itself as a rule; None: no signature
    age_seconds: int = 0
    by_stranger: bool = False
    times: int = 1
    taken: bool = True  # to be answered 2xx; else, by no means
    grave: bool = True  # to do otherwise is a failure; else a warning


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What came of a case, and what to do about it. `status` is the last answer's; times in ms."""

    name: str
    state: State
    finding: str
    advice: str = ""
    status: int | None = None
    error: str | None = None
    duration_ms: int | None = None

    def document(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


def cases(serial: str, now: int) -> tuple[Case, ...]:
    """Everything that is played, the plain one first. `serial` sets the events of this round apart."""
    made = _Bodies(serial, now)
    plain = "cad_generation.completed"
    return (
        made.case("valid", "a fresh delivery, well signed", plain),
        made.case("unicode", "letters of every kind", plain, note=_UNICODE),
        made.case("large", "a body of 200 kB", plain, note="\u00f8" * (_LARGE_BYTES // 2)),
        made.case("unknown-type", "an event it does not know", "tempa_doctor.unheard_of"),
        made.case("duplicate", "the same event twice", plain, times=2),
        made.case(
            "tampered", "a body that was changed after it was signed", plain, taken=False, tampered=True
        ),
        made.case("wrong-key", "a signature by somebody else", plain, taken=False, by_stranger=True),
        made.case("unsigned", "no signature at all", plain, taken=False, unsigned=True),
        made.case(
            *("stale", "a delivery of an hour ago", plain),
            taken=False,
            grave=False,  # X-Webhook-Signature alone cannot tell, and is a way to check that we offer
            age_seconds=_STALE_SECONDS,
        ),
    )


def headers(case: Case, secret: str, stranger: str, now: int, user_agent: str) -> Headers:
    """The headers of one delivery of a case, sent at `now` (Unix seconds)."""
    plain = (("Content-Type", "application/json"), ("User-Agent", user_agent))
    at = now - case.age_seconds
    if case.signed is None:
        return (*plain, ("webhook-id", case.event_id), ("webhook-timestamp", str(at)))
    key = stranger if case.by_stranger else secret
    return (*plain, *webhook_headers([key], case.event_id, at, case.signed))


def judge(case: Case, answers: Sequence[Answer], *, valid_taken: bool = True) -> Finding:
    """What the answers to a case are worth. `valid_taken`: whether it takes anything at all."""
    state, finding, advice = _verdict(case, answers, valid_taken=valid_taken)
    return Finding(
        name=case.name,
        state=state,
        finding=finding,
        advice=advice,
        status=answers[-1].status,
        error=answers[-1].error,
        duration_ms=round(1000 * max(answer.timings.get("total", 0.0) for answer in answers)),
    )


def judge_clock(skew_seconds: float) -> Finding:
    """Its clock against ours."""
    fits = abs(skew_seconds) <= _CLOCK_SECONDS_MAX
    ahead = "ahead of" if skew_seconds > 0 else "behind"
    text = f"its clock is {abs(skew_seconds):.0f} s {ahead} this machine's"
    advice = "" if fits else "Set one of the two (NTP): beyond 300 s every delivery is refused as stale."
    return Finding(name="clock", state="pass" if fits else "warn", finding=text, advice=advice)


def judge_certificate(days: float) -> Finding:
    """How long its certificate is good for."""
    if days < 0:
        text, advice = f"it expired {-days:.0f} days ago", "Renew it: nothing is delivered before."
        return Finding(name="certificate", state="fail", finding=text, advice=advice)
    fits = days >= _CERTIFICATE_DAYS_MIN
    advice = "" if fits else "Renew it; if that should happen by itself, it did not."
    return Finding(
        name="certificate",
        state="pass" if fits else "warn",
        finding=f"it is good for {days:.0f} days more",
        advice=advice,
    )


def judge_speed(slowest_seconds: float) -> Finding:
    """How close it comes to the deadline."""
    fits = slowest_seconds < _SLOW_SECONDS
    advice = "" if fits else "Answer 2xx first and work afterwards: the whole exchange has 10 s by default."
    text = f"the slowest answer took {slowest_seconds * 1000:.0f} ms"
    return Finding(name="speed", state="pass" if fits else "warn", finding=text, advice=advice)


def clock_skew_seconds(answer: Answer, received_at: float) -> float | None:
    """How far the receiver's clock is ahead of ours, by `Date`; None if it does not say.

    `received_at` in Unix seconds. The header has whole seconds: half of one is added.
    """
    try:
        date = parsedate_to_datetime(answer.headers["date"])
    except (KeyError, ValueError, TypeError):
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return date.timestamp() + 0.5 - (received_at - answer.timings.get("total", 0.0) / 2)


def grade(findings: Sequence[Finding]) -> str:
    """A: nothing to say. B, C: one warning, several. D, E: one failure, several. F: not to be used so.

    F is for a receiver that takes forgeries, and for one that does not take a valid delivery.
    """
    failed = [one.name for one in findings if one.state == "fail"]
    warned = [one.name for one in findings if one.state == "warn"]
    if _FORGERIES & set(failed) or "valid" in failed:
        return "F"
    if failed:
        return "D" if len(failed) == 1 else "E"
    return "ABC"[min(len(warned), 2)]


def is_taken(answer: Answer) -> bool:
    """Whether Tempa would call this delivered."""
    return answer.status is not None and 200 <= answer.status < 300


def _verdict(case: Case, answers: Sequence[Answer], *, valid_taken: bool) -> tuple[State, str, str]:
    last = next((answer for answer in answers if is_taken(answer) != case.taken), answers[-1])
    said = _said(last)
    if is_taken(last) != case.taken:
        advice = for_taking(case.name, last) if case.taken else against_taking(case.name)
        return "fail" if case.grave else "warn", f"{case.wants}: {said}", advice
    if case.taken:
        advice = "See that it was worked on once: remember webhook-id." if case.times > 1 else ""
        return "pass", f"{case.wants}: taken ({said})", advice
    if not valid_taken:
        return "warn", f"{case.wants}: {said}", "It refuses the valid one too, so this says nothing."
    if last.status is None or not 400 <= last.status < 500:
        return "warn", f"{case.wants}: not taken, but {said}", "Answer 400 or 401 to what does not verify."
    return "pass", f"{case.wants}: refused ({said})", ""


def _said(answer: Answer) -> str:
    return f"no answer, {answer.error}" if answer.status is None else f"answered {answer.status}"


@dataclass(frozen=True, slots=True)
class _Bodies:
    """Makes the events: like those of a part that was made, and marked as the doctor's."""

    serial: str
    now: int

    def case(
        self,
        name: str,
        wants: str,
        type_: str,
        *,
        note: str = "",
        tampered: bool = False,
        unsigned: bool = False,
        **rules: Any,
    ) -> Case:
        event_id = f"evt_doctor_{self.serial}_{name.replace('-', '_')}"
        body = self._body(event_id, type_, {"note": note} if note else {})
        sent = body.replace(b'"completed"', b'"complexed"') if tampered else body
        return Case(
            name=name,
            wants=wants,
            body=sent,
            event_id=event_id,
            signed=None if unsigned else body,
            **rules,
        )

    def _body(self, event_id: str, type_: str, more: Mapping[str, Any]) -> bytes:
        data = {
            "job_id": f"cad_doctor_{self.serial}",
            "status": "completed",
            "model": "opencascade-brep",
            "compute_time_ms": 48,
            "artifacts": {},
            **more,
            "tags": {"tempa": "doctor"},
        }
        event = {"event": type_, "type": type_, "id": event_id, "timestamp": self.now, "data": data}
        return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
