"""From a request to a ticket: validate everything at once, fingerprint, reserve, admit."""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tempa.core.accounts import AccountFull
from tempa.core.addresses import check_url
from tempa.core.canonical import fingerprint
from tempa.core.crash import crash_point
from tempa.core.errors import Problem, Refusal
from tempa.core.ids import new_id
from tempa.core.work import either
from tempa.jobs.ceiling import Ceiling, Spent
from tempa.jobs.inputs import NO_INPUTS, is_fetched, keep, prefix
from tempa.jobs.instances import NO_INSTANCES
from tempa.jobs.model import Admission, NewJob, Request, Reservation, Tenant, Tenure, Verdict
from tempa.jobs.options import read_options, unknown_fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from ipaddress import IPv4Network, IPv6Network

    from tempa.core.allowances import Allowances
    from tempa.core.clock import Clock
    from tempa.core.errors import TempaError
    from tempa.core.limits import Limits
    from tempa.core.metrics import Meter
    from tempa.jobs.inputs import Inputs
    from tempa.jobs.ports import Allowance, ArtifactStore, Engine, JobStore, StoredObject
    from tempa.jobs.wire import JobOptions

_logger = logging.getLogger(__name__)

_KEY_PATTERN = re.compile(r"[\x20-\x7e]{1,255}")
_WAIT_SECONDS = 2.0  # how long the others wait for the first request with their key


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """What webhook URLs may point to."""

    allow_networks: Sequence[IPv4Network | IPv6Network] = ()
    allow_http: bool = False


@dataclass(kw_only=True)
class Intake:
    """The door for jobs. `read` is pure; `admit` is one store command, but where bytes were lost."""

    store: JobStore
    clock: Clock
    engines: Mapping[str, Engine]
    limits: Limits
    addresses: Addresses
    meter: Meter
    retention_days: float
    withheld: Mapping[str, TempaError] = field(default_factory=dict)  # engines that cannot run here, and why
    artifacts: ArtifactStore | None = None  # without it, what is not marked as removed counts as there
    allowances: Allowances | None = None  # without it, accounts have no limits
    allowance: Allowance = NO_INSTANCES  # who may use which GPU instance
    _admitting: dict[tuple[str, str, str], asyncio.Event] = field(default_factory=dict)

    def read(
        self,
        document: Any,
        known_fields: frozenset[str],
        default_engine: str,
        *,
        offered: Mapping[str, Engine] | None = None,
        inputs: Inputs = NO_INPUTS,
    ) -> Request:
        """Validate a request body whole.

        `known_fields` are the engine's share of the route's body; the rest are `JobOptions`, `engine` and
        the fields of `inputs`, which were read already. `offered` are the route's engines (None: all).
        Raises `Refusal` with every problem there is.
        """
        if not isinstance(document, dict):
            raise invalid([Problem("", "The body must be a JSON object.")])
        problems = unknown_fields(document, known_fields | inputs.fields)
        options, found = read_options(document, self.limits)
        problems += found
        engine = self._engine(
            self.engines if offered is None else offered, document.get("engine", default_engine), problems
        )
        share = {key: value for key, value in document.items() if key in known_fields}
        reading = engine.read(share, self.limits) if engine else None
        problems += reading.problems if reading else ()
        problems += inputs.problems
        blocked = self._blocked(document)
        self._refuse(problems, [*inputs.blocked, *([blocked] if blocked else [])])
        assert engine is not None
        assert reading is not None
        assert reading.work is not None
        assert options is not None
        return _request(engine, options, reading.work, inputs.references())

    def _engine(self, offered: Mapping[str, Engine], name: Any, problems: list[Problem]) -> Engine | None:
        engine = offered.get(name) if isinstance(name, str) else None
        if engine is None:
            names = ", ".join(sorted(offered)) or "none"
            why = self.withheld.get(name) if isinstance(name, str) else None
            reason, code = (why.message, why.code) if why else ("This engine does not run here.", None)
            problems.append(Problem("/engine", f"{reason} Offered: {names}.", code=code))
        return engine

    def _blocked(self, document: Mapping[str, Any]) -> Problem | None:
        url = document.get("webhook_url")
        why = self.why_blocked(url) if isinstance(url, str) else None
        return Problem("/webhook_url", why) if why else None

    def why_blocked(self, url: str) -> str | None:
        """Why a URL may not be called from here; None: it may, as far as its text tells."""
        return check_url(
            url,
            allow_networks=self.addresses.allow_networks,
            allow_http=self.addresses.allow_http,
            length_max=self.limits.url_length_max,
        )

    def _refuse(self, problems: list[Problem], blocked: list[Problem]) -> None:
        if blocked and not problems:
            raise Refusal("address-not-allowed", blocked[0].message, tuple(blocked))
        every = [*problems, *blocked]
        if [problem.pointer for problem in every] == ["/engine"]:
            raise Refusal("engine-unavailable", every[0].message, tuple(every), code=every[0].code)
        if every:
            raise invalid(every)

    async def admit(
        self,
        account: str,
        route: str,
        request: Request,
        key: str | None,
        *,
        derive: bool = True,
        given: Mapping[str, StoredObject] | None = None,
    ) -> Admission:
        """Admit a request, or find the job that stands under its key.

        Without `derive` a request that brings no key is given none: a new job, whatever stands. `given` are
        the stored bytes of its inputs: a new job gets copies of its own before it is admitted.
        Raises `Refusal`: `idempotency-key-reused` (422), `request-in-progress` (409),
        `too-many-requests` (429: a limit of the account), `rental-required` and others of `Allowance.refusal`
        for one that is bound to a GPU instance. What stands under the key is found all the same.
        """
        derivable = derive and self.engines[request.engine].deterministic and not is_fetched(request)
        reservation = reserve(route, request, key) if key is not None or derivable else None
        ceiling = await self._ceiling(account, request.gpu_instance_id)
        new = replace(self._new_job(account, request, reservation), queued_max=ceiling.jobs_max)
        try:
            admission = await self._admit_with(new, given or {})
        except AccountFull as full:
            raise await self._refusal(ceiling, full) from None
        if admission.verdict is Verdict.REUSED:
            raise Refusal(
                "idempotency-key-reused",
                "This Idempotency-Key already stands for another request. "
                "Send a new key with a new request, or the same request with this key.",
            )
        return self._counted(admission)

    async def _ceiling(self, account: str, gpu_instance_id: str | None) -> Ceiling:
        """How many jobs the account may have, and why.

        None more once its day's compute is spent, nor on an instance that it does not rent: in both cases
        the store looks for what stands under the key before it says so.
        """
        if gpu_instance_id is not None:
            tenant = Tenant(account, gpu_instance_id)
            if await self.allowance.tenure(tenant) is not Tenure.ACTIVE:
                return Ceiling(0, not_rented=tenant)
        if self.allowances is None:
            return Ceiling()
        allowed = await self.allowances.of(account)
        cap_seconds = allowed.compute_seconds_per_day
        if cap_seconds is not None:
            spent_seconds = await self.allowances.spent_seconds(account)
            if spent_seconds >= cap_seconds:
                return Ceiling(0, Spent(spent_seconds, cap_seconds))
        return Ceiling(allowed.queued_max)

    async def _refusal(self, ceiling: Ceiling, full: AccountFull) -> Refusal:
        if ceiling.not_rented is not None:
            return await self.allowance.refusal(ceiling.not_rented)
        self.meter.count("tempa_jobs_refused_total", limit=ceiling.limit)
        return ceiling.refusal(full, self.clock.now())

    async def _admit_with(self, new: NewJob, given: Mapping[str, StoredObject]) -> Admission:
        """The job's inputs lie with it before it is there. Those of a job that was not admitted go again.

        Not when nobody knows whether it was: the store's answer may have been lost. Then the janitor asks it.
        """
        if not given:
            return await self._admit_once(new)
        assert self.artifacts is not None
        await keep(self.artifacts, new.id, given)
        crash_point("inputs.kept")
        admission = None
        try:
            admission = await self._admit_once(new)
        except (AccountFull, Refusal):
            await self.artifacts.delete(prefix(new.id))
            raise
        if admission.job.id != new.id:
            await self.artifacts.delete(prefix(new.id))
        return admission

    async def _admit_once(self, new: NewJob) -> Admission:
        """Admit, or find what stands under the key: under a derived one, what still has its files."""
        bound = new.reservation
        if bound is None:
            return await self.store.admit(new)
        slot = (new.account, bound.route, f"{bound.derived}:{bound.key}")
        admission = await self._admit_in_turn(slot, new)
        if bound.derived and await self._has_lost_files(admission):
            # Not marked as removed: the disk may only be away, and its bytes must outlive that.
            anew = replace(new, reservation=replace(bound, not_for=admission.job.id))
            admission = await self._admit_in_turn(slot, anew)
        return admission

    async def _has_lost_files(self, admission: Admission) -> bool:
        """Whether a result stands for the request whose bytes are gone, by whatever hand."""
        result = admission.job.result
        if self.artifacts is None or result is None or admission.verdict is not Verdict.REPLAYED:
            return False
        for artifact in result.artifacts:
            if await self.artifacts.path(artifact.key) is None:
                _logger.warning("a result has lost its files", extra={"job_id": admission.job.id})
                return True
        return False

    def _counted(self, admission: Admission) -> Admission:
        crash_point("admit.committed")
        admitted = admission.verdict is Verdict.ADMITTED
        name = "tempa_jobs_admitted_total" if admitted else "tempa_jobs_replayed_total"
        job = admission.job
        self.meter.count(name, engine=job.request.engine)
        extra = {"job_id": job.id, "account": job.account, "engine": job.request.engine}
        _logger.info("job %s", admission.verdict, extra=extra)
        return admission

    async def _admit_in_turn(self, slot: tuple[str, str, str], new: NewJob) -> Admission:
        """The first writes; the others wait for it once, and then all go on together.

        The store decides atomically who is who. If each that had waited were a first again, they
        would go one by one: of 100 callers, at 40 ms a commit, 50 were still waiting after 2 s.
        """
        first = self._admitting.get(slot)
        if first is not None:
            await self._wait_for(first)
            return await self.store.admit(new)
        self._admitting[slot] = asyncio.Event()
        try:
            crash_point("admit.asked")
            return await self.store.admit(new)
        finally:
            self._admitting.pop(slot).set()

    async def _wait_for(self, first: asyncio.Event) -> None:
        await either(first.wait(), self.clock.sleep(_WAIT_SECONDS))
        if not first.is_set():
            raise Refusal(
                "request-in-progress",
                "The first request with this key is still being written. Ask again.",
                headers={"Retry-After": "1"},
            )

    def _new_job(self, account: str, request: Request, reservation: Reservation | None) -> NewJob:
        now = self.clock.now()
        seconds = request.deadline_seconds
        deterministic = self.engines[request.engine].deterministic
        return NewJob(
            id=new_id(request.kind),
            event_id=new_id("evt"),
            account=account,
            request=request,
            reservation=reservation,
            created_at=now,
            deadline_at=None if seconds is None else now + timedelta(seconds=seconds),
            retained_until=now + timedelta(days=self.retention_days),
            work_key=work_key(request) if deterministic and not is_fetched(request) else None,
        )


def reserve(route: str, request: Request, key: str | None) -> Reservation:
    """The key a request is admitted under.

    A client's key stands for the request as the client wrote it, so that an upgrade of the
    engine between two tries is no conflict. A derived key stands for the bytes the client will
    get, so the engine's version is part of it.
    """
    asked = {"route": route, **asdict(request)}
    version = asked.pop("engine_version")
    del asked["traceparent"]
    if key is not None:
        return Reservation(route=route, key=key, derived=False, fingerprint=fingerprint(asked))
    derived = fingerprint({**asked, "engine_version": version})
    return Reservation(route=route, key=derived, derived=True, fingerprint=derived)


def work_key(request: Request) -> str | None:
    """What requests for equal work have in common, whatever their keys, tags, priorities or webhooks.

    None for those that want a kernel of their own: `cache: "bypass"` neither takes another job's
    result nor gives its own, and a rented instance is paid for to be used.
    """
    if request.cache != "use" or request.gpu_instance_id is not None:
        return None
    share = {
        "engine": request.engine,
        "engine_version": request.engine_version,
        "work": request.work,
        "inputs": request.inputs,
    }
    return fingerprint(share)


def read_key(header: str | None) -> str | None:
    """The `Idempotency-Key` header: 1 to 255 printable characters, bare or quoted (RFC 8941 string)."""
    if header is None:
        return None
    text = header.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = re.sub(r"\\([\"\\])", r"\1", text[1:-1])
    if _KEY_PATTERN.fullmatch(text) is None:
        raise Refusal(
            "invalid-request",
            "Idempotency-Key must be 1 to 255 printable ASCII characters.",
            (Problem("", "The Idempotency-Key header must be 1 to 255 printable ASCII characters.", 255),),
        )
    return text


def _request(
    engine: Engine, options: JobOptions, work: Mapping[str, Any], inputs: Mapping[str, Any]
) -> Request:
    return Request(
        engine=engine.name,
        engine_version=engine.version,
        kind=engine.kind,
        family=engine.family,
        model=engine.model,
        lane=engine.lane,
        work=work,
        webhook_url=options.webhook_url,
        webhook_events=tuple(options.webhook_events or ()),
        deadline_seconds=options.deadline_seconds,
        priority=options.priority,
        tags=options.tags,
        gpu_instance_id=options.gpu_instance_id,
        cache=options.cache,
        inputs=inputs,
    )


def invalid(problems: Sequence[Problem]) -> Refusal:
    """422 `invalid-request`, with all that was found; under a job's code if all is of that code."""
    count = len(problems)
    detail = f"{count} problems were found; all are listed." if count > 1 else problems[0].message
    codes = {problem.code for problem in problems}
    return Refusal("invalid-request", detail, tuple(problems), code=codes.pop() if len(codes) == 1 else None)
