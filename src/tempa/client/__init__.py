"""Python client: `Client` for programs that may block, `AsyncClient` for event loops."""

from tempa.client.async_client import AsyncClient, AsyncJobHandle
from tempa.client.client import Client, JobHandle
from tempa.client.errors import (
    ClientError,
    Corrupted,
    JobCanceled,
    JobFailed,
    Misconfigured,
    NotAuthorized,
    NotReachable,
    TempaProblem,
    WaitTimeout,
)
from tempa.client.events import JobEvent
from tempa.client.webhook_stream import StreamedWebhook

__all__ = [
    "AsyncClient",
    "AsyncJobHandle",
    "Client",
    "ClientError",
    "Corrupted",
    "JobCanceled",
    "JobEvent",
    "JobFailed",
    "JobHandle",
    "Misconfigured",
    "NotAuthorized",
    "NotReachable",
    "StreamedWebhook",
    "TempaProblem",
    "WaitTimeout",
]
