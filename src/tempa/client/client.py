"""The client for programs that may block. `async_client.py` has the same calls, awaited."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from tempa.client import drivers
from tempa.client.calls import (
    GENERATE_MODEL,
    DeadLetterFilter,
    DeliveryFilter,
    EndpointOptions,
    JobFilter,
    ModelOptions,
    Source,
    SplatOptions,
)
from tempa.client.discovery import discover
from tempa.client.exchange import Pace
from tempa.client.operations import Operations
from tempa.client.settlement import Settlement

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    import httpx2

    from tempa.client.discovery import Server
    from tempa.client.events import JobEvent
    from tempa.client.operations import Accepted
    from tempa.client.webhook_stream import StreamedWebhook
    from tempa.jobs.wire import ArtifactView, CancelView, EventView, FileView, JobView, Ticket
    from tempa.webhooks.wire import (
        DeadGroupView,
        DeliveryRecord,
        DeliveryView,
        Discarded,
        EndpointSecret,
        EndpointView,
        Redriven,
        TestSent,
    )

DEFAULT_TIMEOUT_SECONDS = 60.0


class Client(Settlement):
    """A Tempa server, called from the thread at hand; may be shared between threads.

    Example:
        with Client() as tempa:
            job = tempa.generate_model({"outer_diameter": 120.5, "inner_diameter": 45.0, "length": 300.0})
            print(job.id)  # a ticket: from here on the job is on disk
            done = job.wait()  # raises JobFailed, JobCanceled
            job.download("out")  # verified against the job's SHA-256

    Every call that changes something carries an idempotency key, made once per call and kept through
    its repeats: an answer that is lost costs no second job. Give your own to make repeats of your
    program one call too.

    Args:
        url: Else TEMPA_URL, else the server that `tempa up` runs on this machine.
        api_key: Else TEMPA_API_KEY, else the local server's.
        timeout_seconds: How long one call may take, repeats included. Waits and event streams have
            their own limits.
        transport: What speaks HTTP, for tests.
        pace: Clock, dice and backoff, for tests.
        sleep: What waits between repeats, for tests.

    Raises:
        NotReachable: No server is known; and from every call, when none answers.
        NotAuthorized, TempaProblem: From every call the server refuses.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        transport: httpx2.BaseTransport | None = None,
        pace: Pace | None = None,
        sleep: Callable[[float], object] = drivers.sleep,
    ) -> None:
        self._driver = drivers.Driver(partial(discover, url, api_key), transport, sleep)
        self._do = Operations(pace or Pace(), timeout_seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self._driver.close()

    @property
    def server(self) -> Server:
        """Which server is called, and how it was found."""
        return self._driver.server

    # Asking for work

    def generate_model(
        self,
        parameters: Mapping[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[ModelOptions],
    ) -> JobHandle:
        """Ask for a solid model: a template's `parameters` (lengths in mm), or a feature `tree`."""
        flow = self._do.generate_model(parameters, options, idempotency_key)
        return JobHandle(self, self._driver.run(flow))

    def generate_splat(
        self,
        image: Path | Source | None = None,
        *,
        depth: Path | Source | None = None,
        mesh: Path | Source | None = None,
        idempotency_key: str | None = None,
        **options: Unpack[SplatOptions],
    ) -> JobHandle:
        """Ask for Gaussian splats of a picture, or of a `mesh`: a file here, a URL, or a stored file."""
        inputs = {"image": image, "depth": depth, "mesh": mesh}
        flow = self._do.generate_splat(inputs, options, idempotency_key)
        return JobHandle(self, self._driver.run(flow))

    def convert(
        self,
        file: Path | Source,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[SplatOptions],
    ) -> JobHandle:
        """Ask for a file in other formats: a file here, a URL, or a stored file."""
        flow = self._do.convert({"file": file}, options, idempotency_key)
        return JobHandle(self, self._driver.run(flow))

    def submit(
        self, document: Mapping[str, Any], path: str = GENERATE_MODEL, *, idempotency_key: str | None = None
    ) -> JobHandle:
        """Ask for any job: `document` is the body, `path` the route."""
        return JobHandle(self, self._driver.run(self._do.submit(document, path, idempotency_key)))

    def upload(self, path: str | Path, *, idempotency_key: str | None = None) -> FileView:
        """Store a file on the server; `{"file_id": ...}` then stands for it in a request."""
        return self._driver.run(self._do.upload(Path(path), idempotency_key))

    # One job

    def job(self, job_id: str) -> JobView:
        """The job as it is now."""
        return self._driver.run(self._do.job(job_id))

    def wait(
        self,
        job_id: str,
        timeout_seconds: float | None = None,
        *,
        on_change: Callable[[JobView], None] | None = None,
    ) -> JobView:
        """The job once it is completed, however often the connection or the server goes away meanwhile.

        Raises JobFailed, JobCanceled, or WaitTimeout (the wait ended, the job did not). `on_change`
        is called with each view of the job.
        """
        return self._driver.run(self._do.wait(job_id, timeout_seconds, on_change))

    def events(self, job_id: str, after: int = 0) -> Iterator[JobEvent]:
        """The job's events behind number `after`, as they happen, to the terminal one.

        Broken streams are resumed: each event comes once, in order. News of progress comes in
        between, without a number.
        """
        return self._driver.iterate(self._do.events(job_id, after))

    def cancel(self, job_id: str) -> CancelView:
        """Cancel; a job that has ended stays as it is, and the answer says so."""
        return self._driver.run(self._do.cancel(job_id))

    def retry(self, job_id: str, *, idempotency_key: str | None = None) -> JobHandle:
        """Ask for the same again, as a new job."""
        return JobHandle(self, self._driver.run(self._do.retry(job_id, idempotency_key)))

    def delete(self, job_id: str) -> None:
        """Remove an ended job's inputs and artifacts."""
        self._driver.run(self._do.delete(job_id))

    def download(
        self,
        source: str | JobView | ArtifactView,
        folder: str | Path,
        *,
        names: Collection[str] | None = None,
    ) -> list[Path]:
        """Fetch a completed job's artifacts (only those in `names`, if given), or one artifact.

        Each file appears whole, with the SHA-256 the job names, or not at all (Corrupted). Links
        that have expired are renewed.
        """
        return self._driver.run(self._do.download(source, Path(folder), names))

    # Many jobs

    def jobs(self, *, limit: int | None = None, **conditions: Unpack[JobFilter]) -> Iterator[JobView]:
        """The account's jobs, newest first; pages are fetched as the iterator gets there."""
        return self._driver.iterate(self._do.jobs(limit, conditions))

    def feed(self, after: int = 0) -> Iterator[EventView]:
        """The account's events behind position `after`, up to the newest.

        Keep the last event's `position` and come back with it: nothing is missed.
        """
        return self._driver.iterate(self._do.feed(after))

    # What the server offers

    def engines(self) -> list[dict[str, Any]]:
        """The engines that run there."""
        return self._driver.run(self._do.documents("/v1/engines"))

    def templates(self) -> list[dict[str, Any]]:
        """The parametric templates, each with its JSON Schema."""
        return self._driver.run(self._do.documents("/v1/templates"))

    def limits(self) -> dict[str, Any]:
        """What one request may ask for."""
        return self._driver.run(self._do.document("/v1/limits"))

    # Webhooks

    def deliveries(
        self, *, limit: int | None = None, **conditions: Unpack[DeliveryFilter]
    ) -> Iterator[DeliveryView]:
        """Webhook deliveries, newest first."""
        return self._driver.iterate(self._do.deliveries(limit, conditions))

    def delivery(self, delivery_id: str) -> DeliveryRecord:
        """One delivery with all its attempts."""
        return self._driver.run(self._do.delivery(delivery_id))

    def dead_letters(self) -> list[DeadGroupView]:
        """Dead letters, in groups of one address and reason."""
        return self._driver.run(self._do.dead_letters())

    def dead_letters_in(self, group: str, *, limit: int | None = None) -> Iterator[DeliveryView]:
        """The dead letters of a group, newest first."""
        return self._driver.iterate(self._do.dead_letters_in(group, limit))

    def redrive(
        self,
        *,
        dry_run: bool = False,
        rate_per_second: float | None = None,
        **conditions: Unpack[DeadLetterFilter],
    ) -> Redriven:
        """Send dead letters again: those that meet all given conditions. `dry_run` only counts them."""
        return self._driver.run(self._do.redrive(conditions, rate_per_second, dry_run=dry_run))

    def discard(self, delivery_ids: Sequence[str], reason: str) -> Discarded:
        """Give dead letters up, for a reason that is kept."""
        return self._driver.run(self._do.discard(delivery_ids, reason))

    # Webhook endpoints

    def endpoints(self, *, limit: int | None = None) -> Iterator[EndpointView]:
        """Registered webhook endpoints, newest first."""
        return self._driver.iterate(self._do.endpoints(limit))

    def endpoint(self, endpoint_id: str) -> EndpointView:
        """One of them, and how it fares."""
        return self._driver.run(self._do.endpoint(endpoint_id))

    def register_endpoint(
        self, url: str, *, signing: str | None = None, **options: Unpack[EndpointOptions]
    ) -> EndpointSecret:
        """Send the account's events to `url` from now on. Its `secret` is shown this once."""
        return self._driver.run(self._do.register_endpoint(url, signing, options))

    def change_endpoint(
        self, endpoint_id: str, *, url: str | None = None, **options: Unpack[EndpointOptions]
    ) -> EndpointView:
        """Change what is given."""
        return self._driver.run(self._do.change_endpoint(endpoint_id, url, options))

    def rotate_endpoint(self, endpoint_id: str, *, overlap_seconds: float | None = None) -> EndpointSecret:
        """A new secret, shown this once. The older ones sign too until the overlap is over: a day later."""
        return self._driver.run(self._do.rotate_endpoint(endpoint_id, overlap_seconds))

    def pause_endpoint(self, endpoint_id: str) -> EndpointView:
        """Park what comes, until it is resumed."""
        return self._driver.run(self._do.pause_endpoint(endpoint_id))

    def resume_endpoint(self, endpoint_id: str) -> EndpointView:
        """Send again, after a pause, a 410 or an outage."""
        return self._driver.run(self._do.resume_endpoint(endpoint_id))

    def test_endpoint(self, endpoint_id: str) -> TestSent:
        """Send it an event of its own; `delivery()` tells what came of it."""
        return self._driver.run(self._do.test_endpoint(endpoint_id))

    def remove_endpoint(self, endpoint_id: str) -> None:
        """End it; what waits there is canceled."""
        return self._driver.run(self._do.remove_endpoint(endpoint_id))

    def webhooks(self, *, events: Sequence[str] = (), after: int | None = None) -> Iterator[StreamedWebhook]:
        """The account's webhooks as they would be sent, from now on or behind position `after`; no end.

        For a receiver that the server cannot reach. A connection that breaks is made again.
        """
        return self._driver.iterate(self._do.webhooks(events, after))

    # Keys

    def keys(self) -> list[dict[str, Any]]:
        """The account's API keys, without their secrets."""
        return self._driver.run(self._do.documents("/v1/keys"))

    def create_key(self, name: str, scopes: Sequence[str]) -> dict[str, Any]:
        """Make a key; `api_key` in the answer is shown this once."""
        return self._driver.run(self._do.create_key(name, scopes))

    def revoke_key(self, key_id: str) -> None:
        """End a key."""
        self._driver.run(self._do.revoke_key(key_id))


class JobHandle:
    """An admitted job. `replayed`: this request was known already, and nothing new was enqueued."""

    def __init__(self, client: Client, accepted: Accepted) -> None:
        self._client = client
        self.ticket: Ticket = accepted.ticket
        self.replayed = accepted.replayed
        self.idempotency_key = accepted.idempotency_key

    def __repr__(self) -> str:
        return f"JobHandle({self.id!r})"

    @property
    def id(self) -> str:
        """The job's id: all that another process needs to go on from here."""
        return self.ticket.job_id

    def view(self) -> JobView:
        """The job as it is now."""
        return self._client.job(self.id)

    def wait(self, timeout_seconds: float | None = None) -> JobView:
        """See `Client.wait`."""
        return self._client.wait(self.id, timeout_seconds)

    def events(self, after: int = 0) -> Iterator[JobEvent]:
        """See `Client.events`."""
        return self._client.events(self.id, after)

    def cancel(self) -> CancelView:
        """See `Client.cancel`."""
        return self._client.cancel(self.id)

    def download(self, folder: str | Path, *, names: Collection[str] | None = None) -> list[Path]:
        """See `Client.download`."""
        return self._client.download(self.id, folder, names=names)
