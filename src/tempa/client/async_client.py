"""The client for event loops: the calls of `client.py`, awaited. A test holds the two together."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from tempa.client.async_drivers import AsyncDriver
from tempa.client.async_settlement import AsyncSettlement
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
from tempa.client.client import DEFAULT_TIMEOUT_SECONDS, Client, JobHandle
from tempa.client.discovery import discover
from tempa.client.exchange import Pace
from tempa.client.operations import Operations
from tempa.client.settlement import Settlement
from tempa.core.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence

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

_sleep = SystemClock().sleep


class AsyncClient(AsyncSettlement):
    """A Tempa server, called from an event loop: see `Client`, whose calls and arguments these are.

    Example:
        async with AsyncClient() as tempa:
            job = await tempa.generate_model(parameters)
            async for event in job.events():
                print(event.type)
            await job.download("out")
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        transport: httpx2.AsyncBaseTransport | None = None,
        pace: Pace | None = None,
        sleep: Callable[[float], Awaitable[object]] = _sleep,
    ) -> None:
        self._driver = AsyncDriver(partial(discover, url, api_key), transport, sleep)
        self._do = Operations(pace or Pace(), timeout_seconds)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._driver.close()

    @property
    def server(self) -> Server:
        return self._driver.server

    # Asking for work

    async def generate_model(
        self,
        parameters: Mapping[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[ModelOptions],
    ) -> AsyncJobHandle:
        flow = self._do.generate_model(parameters, options, idempotency_key)
        return AsyncJobHandle(self, await self._driver.run(flow))

    async def generate_splat(
        self,
        image: Path | Source | None = None,
        *,
        depth: Path | Source | None = None,
        mesh: Path | Source | None = None,
        idempotency_key: str | None = None,
        **options: Unpack[SplatOptions],
    ) -> AsyncJobHandle:
        inputs = {"image": image, "depth": depth, "mesh": mesh}
        flow = self._do.generate_splat(inputs, options, idempotency_key)
        return AsyncJobHandle(self, await self._driver.run(flow))

    async def convert(
        self,
        file: Path | Source,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[SplatOptions],
    ) -> AsyncJobHandle:
        flow = self._do.convert({"file": file}, options, idempotency_key)
        return AsyncJobHandle(self, await self._driver.run(flow))

    async def submit(
        self, document: Mapping[str, Any], path: str = GENERATE_MODEL, *, idempotency_key: str | None = None
    ) -> AsyncJobHandle:
        return AsyncJobHandle(self, await self._driver.run(self._do.submit(document, path, idempotency_key)))

    async def upload(self, path: str | Path, *, idempotency_key: str | None = None) -> FileView:
        return await self._driver.run(self._do.upload(Path(path), idempotency_key))

    # One job

    async def job(self, job_id: str) -> JobView:
        return await self._driver.run(self._do.job(job_id))

    async def wait(
        self,
        job_id: str,
        timeout_seconds: float | None = None,
        *,
        on_change: Callable[[JobView], None] | None = None,
    ) -> JobView:
        return await self._driver.run(self._do.wait(job_id, timeout_seconds, on_change))

    def events(self, job_id: str, after: int = 0) -> AsyncGenerator[JobEvent, None]:
        return self._driver.iterate(self._do.events(job_id, after))

    async def cancel(self, job_id: str) -> CancelView:
        return await self._driver.run(self._do.cancel(job_id))

    async def retry(self, job_id: str, *, idempotency_key: str | None = None) -> AsyncJobHandle:
        return AsyncJobHandle(self, await self._driver.run(self._do.retry(job_id, idempotency_key)))

    async def delete(self, job_id: str) -> None:
        await self._driver.run(self._do.delete(job_id))

    async def download(
        self,
        source: str | JobView | ArtifactView,
        folder: str | Path,
        *,
        names: Collection[str] | None = None,
    ) -> list[Path]:
        return await self._driver.run(self._do.download(source, Path(folder), names))

    # Many jobs

    def jobs(
        self, *, limit: int | None = None, **conditions: Unpack[JobFilter]
    ) -> AsyncGenerator[JobView, None]:
        return self._driver.iterate(self._do.jobs(limit, conditions))

    def feed(self, after: int = 0) -> AsyncGenerator[EventView, None]:
        return self._driver.iterate(self._do.feed(after))

    # What the server offers

    async def engines(self) -> list[dict[str, Any]]:
        return await self._driver.run(self._do.documents("/v1/engines"))

    async def templates(self) -> list[dict[str, Any]]:
        return await self._driver.run(self._do.documents("/v1/templates"))

    async def limits(self) -> dict[str, Any]:
        return await self._driver.run(self._do.document("/v1/limits"))

    # Webhooks

    def deliveries(
        self, *, limit: int | None = None, **conditions: Unpack[DeliveryFilter]
    ) -> AsyncGenerator[DeliveryView, None]:
        return self._driver.iterate(self._do.deliveries(limit, conditions))

    async def delivery(self, delivery_id: str) -> DeliveryRecord:
        return await self._driver.run(self._do.delivery(delivery_id))

    async def dead_letters(self) -> list[DeadGroupView]:
        return await self._driver.run(self._do.dead_letters())

    def dead_letters_in(self, group: str, *, limit: int | None = None) -> AsyncGenerator[DeliveryView, None]:
        return self._driver.iterate(self._do.dead_letters_in(group, limit))

    async def redrive(
        self,
        *,
        dry_run: bool = False,
        rate_per_second: float | None = None,
        **conditions: Unpack[DeadLetterFilter],
    ) -> Redriven:
        return await self._driver.run(self._do.redrive(conditions, rate_per_second, dry_run=dry_run))

    async def discard(self, delivery_ids: Sequence[str], reason: str) -> Discarded:
        return await self._driver.run(self._do.discard(delivery_ids, reason))

    # Webhook endpoints

    def endpoints(self, *, limit: int | None = None) -> AsyncGenerator[EndpointView, None]:
        return self._driver.iterate(self._do.endpoints(limit))

    async def endpoint(self, endpoint_id: str) -> EndpointView:
        return await self._driver.run(self._do.endpoint(endpoint_id))

    async def register_endpoint(
        self, url: str, *, signing: str | None = None, **options: Unpack[EndpointOptions]
    ) -> EndpointSecret:
        return await self._driver.run(self._do.register_endpoint(url, signing, options))

    async def change_endpoint(
        self, endpoint_id: str, *, url: str | None = None, **options: Unpack[EndpointOptions]
    ) -> EndpointView:
        return await self._driver.run(self._do.change_endpoint(endpoint_id, url, options))

    async def rotate_endpoint(
        self, endpoint_id: str, *, overlap_seconds: float | None = None
    ) -> EndpointSecret:
        return await self._driver.run(self._do.rotate_endpoint(endpoint_id, overlap_seconds))

    async def pause_endpoint(self, endpoint_id: str) -> EndpointView:
        return await self._driver.run(self._do.pause_endpoint(endpoint_id))

    async def resume_endpoint(self, endpoint_id: str) -> EndpointView:
        return await self._driver.run(self._do.resume_endpoint(endpoint_id))

    async def test_endpoint(self, endpoint_id: str) -> TestSent:
        return await self._driver.run(self._do.test_endpoint(endpoint_id))

    async def remove_endpoint(self, endpoint_id: str) -> None:
        return await self._driver.run(self._do.remove_endpoint(endpoint_id))

    def webhooks(
        self, *, events: Sequence[str] = (), after: int | None = None
    ) -> AsyncGenerator[StreamedWebhook, None]:
        return self._driver.iterate(self._do.webhooks(events, after))

    # Keys

    async def keys(self) -> list[dict[str, Any]]:
        return await self._driver.run(self._do.documents("/v1/keys"))

    async def create_key(self, name: str, scopes: Sequence[str]) -> dict[str, Any]:
        return await self._driver.run(self._do.create_key(name, scopes))

    async def revoke_key(self, key_id: str) -> None:
        await self._driver.run(self._do.revoke_key(key_id))


class AsyncJobHandle:
    """An admitted job. `replayed`: this request was known already, and nothing new was enqueued."""

    def __init__(self, client: AsyncClient, accepted: Accepted) -> None:
        self._client = client
        self.ticket: Ticket = accepted.ticket
        self.replayed = accepted.replayed
        self.idempotency_key = accepted.idempotency_key

    def __repr__(self) -> str:
        return f"AsyncJobHandle({self.id!r})"

    @property
    def id(self) -> str:
        return self.ticket.job_id

    async def view(self) -> JobView:
        return await self._client.job(self.id)

    async def wait(self, timeout_seconds: float | None = None) -> JobView:
        return await self._client.wait(self.id, timeout_seconds)

    def events(self, after: int = 0) -> AsyncGenerator[JobEvent, None]:
        return self._client.events(self.id, after)

    async def cancel(self) -> CancelView:
        return await self._client.cancel(self.id)

    async def download(self, folder: str | Path, *, names: Collection[str] | None = None) -> list[Path]:
        return await self._client.download(self.id, folder, names=names)


def _share_docstrings(ours: type, theirs: type) -> None:
    for name, member in vars(ours).items():
        if not name.startswith("_") and not isinstance(member, property):
            member.__doc__ = getattr(theirs, name).__doc__


_share_docstrings(AsyncSettlement, Settlement)
_share_docstrings(AsyncClient, Client)
_share_docstrings(AsyncJobHandle, JobHandle)
