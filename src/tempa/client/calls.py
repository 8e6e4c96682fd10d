"""Every request the client makes, as a value. One function a route of the API."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict
from urllib.parse import quote

from tempa.client.effects import Call
from tempa.core.clock import rfc3339
from tempa.core.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

GENERATE_MODEL = "/v1/models/generate"
GENERATE_SPLAT = "/v1/splats/generate"
CONVERT = "/v1/convert"
ENDPOINTS = "/v1/webhooks/endpoints"
GPU_INSTANCES = "/v1/gpu-instances"
QUOTES = "/v1/rentals/quotes"
PAYMENTS = "/v1/payments"
ANOMALIES = "/v1/payments/anomalies"
REFUNDS = "/v1/payments/refunds"
TREASURY = "/v1/payments/treasury"
LEDGER = "/v1/ledger"
HOLD_SECONDS_MAX = 30

_STREAM_SILENCE_SECONDS = 45.0  # the server writes a comment every 15 s
_TRANSFER_SILENCE_SECONDS = 60.0


class JobOptions(TypedDict, total=False):
    """What every job can be asked with; the server knows defaults and limits."""

    engine: str  # `engines()` lists them
    export_formats: Sequence[str]
    webhook_url: str
    webhook_events: Sequence[str]
    deadline_seconds: float  # from admission
    priority: int  # 0 to 9, higher first
    tags: Mapping[str, str]
    gpu_instance_id: str
    cache: str  # "use" | "bypass"


class ModelOptions(JobOptions, total=False):
    """What a model can be asked with, beside its parameters: step, brep, stl, glb and 3mf are its formats."""

    template: str  # "flanged-tube@1" if absent; `templates()` lists them
    tree: Mapping[str, Any]  # a feature tree instead of a template
    tolerance: Mapping[str, float]  # linear: mm, angular: degrees
    checks: Mapping[str, Any]  # solids, volume_min, volume_max, bounding_box, watertight


class SplatOptions(JobOptions, total=False):
    """What splats can be asked with, beside what they are made of."""

    parameters: Mapping[str, Any]  # num_gaussians, seed, ...: `engines()` has each engine's schema
    preview: Mapping[str, int]  # width, height: px; turntable_frames


class JobFilter(TypedDict, total=False):
    """Which jobs to list. All given conditions hold."""

    status: str
    engine: str
    tag: str  # name:value
    code: str
    since: datetime | str  # RFC 3339


class DeliveryFilter(TypedDict, total=False):
    """Which deliveries to list. All given conditions hold."""

    status: str  # pending, leased, parked, delivered, dead, canceled
    job_id: str
    endpoint_id: str


class EndpointOptions(TypedDict, total=False):
    """What an endpoint may be asked with, beside its URL."""

    events: Sequence[str] | None  # None: how jobs end
    description: str
    retry_statuses: Sequence[int]  # of 4xx, besides 408 and 429
    max_in_flight: int
    rate_per_second: float | None


class DeadLetterFilter(TypedDict, total=False):
    """Which dead letters to send again. All given conditions hold."""

    delivery_ids: Sequence[str]
    endpoint_id: str
    group: str
    since: datetime | str  # those that died at or after it


class PriceOfInstance(TypedDict):
    """What a GPU instance costs in one asset: `amount` base units, whole and in a string, for `seconds`."""

    asset: str  # "SOL", or the address of a token's mint
    amount: str
    seconds: int


Source: TypeAlias = "str | Mapping[str, str]"
"""An input that is elsewhere: an `https://` URL, an upload `{"file_id"}`, a result `{"job_id", "name"}`."""


def new_idempotency_key() -> str:
    """A key for one logical call; every repeat of the call carries the same one."""
    return new_id("idem")


def submit(document: Mapping[str, Any], path: str, key: str) -> Call:
    """Ask for a job."""
    return Call(method="POST", path=path, headers=_json_headers(key), body=_json(document))


def job(job_id: str) -> Call:
    """Look at a job."""
    return Call(method="GET", path=_job(job_id))


def held_job(job_id: str, etag: str, hold_seconds: int) -> Call:
    """Look at a job once its status differs from what `etag` named, or after `hold_seconds`."""
    return Call(
        method="GET",
        path=_job(job_id),
        query={"wait": str(hold_seconds)},
        headers={"If-None-Match": etag} if etag else {},
        silence_seconds=hold_seconds + 15.0,
    )


def job_events(job_id: str, after: int) -> Call:
    """Open a job's log behind event `after`."""
    return _stream(_job(job_id) + "/events", after or None)


def cancel(job_id: str) -> Call:
    """Cancel a job."""
    return post(_job(job_id) + "/cancel")


def retry(job_id: str, key: str) -> Call:
    """Ask for the same again, as a new job."""
    return post(_job(job_id) + "/retry", key=key)


def delete(job_id: str) -> Call:
    """Remove a finished job's inputs and artifacts."""
    return Call(method="DELETE", path=_job(job_id))


def upload(file: Path, key: str) -> Call:
    """Store a file, sent as it lies on disk."""
    headers = {
        "Idempotency-Key": key,
        "Content-Type": "application/octet-stream",
        "Content-Length": str(file.stat().st_size),
    }
    return Call(
        method="POST",
        path="/v1/files",
        headers=headers,
        body=file,
        silence_seconds=_TRANSFER_SILENCE_SECONDS,
    )


def download(url: str) -> Call:
    """Fetch a result by its link. No key goes along: the link is signed, and may lead to a bucket."""
    return Call(method="GET", path=url, silence_seconds=_TRANSFER_SILENCE_SECONDS)


def look(path: str, **query: Any) -> Call:
    """A GET of what has no function of its own."""
    return Call(method="GET", path=path, query=_query(query))


def post(path: str, document: Mapping[str, Any] | None = None, *, key: str | None = None) -> Call:
    """A POST that may be repeated: doing it twice changes no more than doing it once."""
    body = b"" if document is None else _json(document)
    return Call(method="POST", path=path, headers=_json_headers(key or new_idempotency_key()), body=body)


def create_key(name: str, scopes: Sequence[str]) -> Call:
    """Make an API key. Not repeated when its answer is lost: a key nobody knows would be left behind."""
    body = _json({"name": name, "scopes": list(scopes)})
    headers = _json_headers(new_idempotency_key())
    return Call(method="POST", path="/v1/keys", headers=headers, body=body, repeatable=False)


def revoke_key(key_id: str) -> Call:
    """End an API key."""
    return Call(method="DELETE", path=f"/v1/keys/{quote(key_id, safe='')}")


def register_endpoint(document: Mapping[str, Any]) -> Call:
    """Register a webhook endpoint. Not repeated when its answer is lost: nobody would know its secret."""
    return replace(post(ENDPOINTS, document), repeatable=False)


def rotate_endpoint(endpoint_id: str, overlap_seconds: float | None) -> Call:
    """Give an endpoint a new secret. Not repeated, for the same reason."""
    document = {} if overlap_seconds is None else {"overlap_seconds": overlap_seconds}
    return replace(post(f"{endpoint(endpoint_id)}/rotate", document), repeatable=False)


def change_endpoint(endpoint_id: str, document: Mapping[str, Any]) -> Call:
    """Change an endpoint."""
    return replace(post(endpoint(endpoint_id), document), method="PATCH")


def remove_endpoint(endpoint_id: str) -> Call:
    """End an endpoint."""
    return Call(method="DELETE", path=endpoint(endpoint_id))


def endpoint(endpoint_id: str) -> str:
    """Where an endpoint is."""
    return f"{ENDPOINTS}/{quote(endpoint_id, safe='')}"


def add_gpu_instance(name: str, prices: Sequence[PriceOfInstance]) -> Call:
    """Offer an instance. Not repeated when its answer is lost: it would be offered twice."""
    return replace(post(GPU_INSTANCES, {"name": name, "prices": list(prices)}), repeatable=False)


def change_prices(gpu_instance_id: str, prices: Sequence[PriceOfInstance]) -> Call:
    """Give an instance other prices."""
    return replace(post(gpu_instance(gpu_instance_id), {"prices": list(prices)}), method="PATCH")


def gpu_instance(gpu_instance_id: str) -> str:
    """Where an instance is."""
    return f"{GPU_INSTANCES}/{quote(gpu_instance_id, safe='')}"


def ask_quote(gpu_instance_id: str, asset: str, seconds: int) -> Call:
    """Ask for a quote. May be repeated: one that nobody knows of binds nobody."""
    return post(QUOTES, {"gpu_instance_id": gpu_instance_id, "asset": asset, "seconds": seconds})


def quote_at(quote_id: str) -> str:
    """Where a quote is."""
    return f"{QUOTES}/{quote(quote_id, safe='')}"


def payment(signature: str) -> str:
    """Where a payment is."""
    return f"{PAYMENTS}/{quote(signature, safe='')}"


def anomaly(anomaly_id: str) -> str:
    """Where an anomaly is."""
    return f"{ANOMALIES}/{quote(anomaly_id, safe='')}"


def resolve_anomaly(anomaly_id: str, resolution: str, quote_id: str | None) -> Call:
    """Close an anomaly. A second time is refused, and says who was first."""
    document = {"resolution": resolution, **({"quote_id": quote_id} if quote_id else {})}
    return post(anomaly(anomaly_id) + "/resolve", document)


def refund(refund_id: str) -> str:
    """Where a refund is."""
    return f"{REFUNDS}/{quote(refund_id, safe='')}"


def ask_refund(recipient: str, anomaly_id: str | None, signature: str | None, note: str | None) -> Call:
    """Have money sent back. Not repeated when its answer is lost: `refunds` tells whether it was taken."""
    named = {"anomaly_id": anomaly_id, "signature": signature, "note": note}
    document = {name: value for name, value in named.items() if value is not None}
    return replace(post(REFUNDS, {"recipient": recipient, **document}), repeatable=False)


def give_up_refund(refund_id: str, reason: str) -> Call:
    """Give a refund up. A second time is refused."""
    return post(refund(refund_id) + "/give-up", {"reason": reason})


def webhook_stream(events: Sequence[str], after: int | None) -> Call:
    """Open the stream of webhooks behind position `after`; None: now."""
    return _stream("/v1/webhooks/stream", after, {"events": ",".join(events)} if events else {})


def model_document(parameters: Mapping[str, Any] | None, options: ModelOptions) -> dict[str, Any]:
    """The body of `POST /v1/models/generate`. What was not given is not sent."""
    document: dict[str, Any] = {} if parameters is None else {"parameters": dict(parameters)}
    return document | {name: value for name, value in options.items() if value is not None}


def input_fields(name: str, source: Source) -> dict[str, Any]:
    """How a request names an input that needs no upload: by URL, or as a file that is stored there."""
    return {f"{name}_url": source} if isinstance(source, str) else {f"{name}_artifact": dict(source)}


def redrive_document(
    conditions: DeadLetterFilter, rate_per_second: float | None, *, dry_run: bool
) -> dict[str, Any]:
    """The body of a re-drive. What was not given is not sent."""
    document: dict[str, Any] = {**conditions, "rate_per_second": rate_per_second, "dry_run": dry_run}
    return {name: _plain(value) for name, value in document.items() if value is not None}


def _stream(path: str, after: int | None, query: Mapping[str, str] | None = None) -> Call:
    headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
    if after is not None:
        headers["Last-Event-ID"] = str(after)
    return Call(
        method="GET", path=path, query=query or {}, headers=headers, silence_seconds=_STREAM_SILENCE_SECONDS
    )


def _job(job_id: str) -> str:
    return f"/v1/jobs/{quote(job_id, safe='')}"


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()


def _json_headers(key: str) -> dict[str, str]:
    return {"Idempotency-Key": key, "Content-Type": "application/json"}


def _query(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(_plain(value)) for name, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return rfc3339(value)
    return list(value) if isinstance(value, tuple) else value
