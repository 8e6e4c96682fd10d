"""What both clients can do, each as a flow. One method a promise; how it is awaited is the client's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, RootModel

from tempa.client import calls, files, waiting
from tempa.client.effects import Emit
from tempa.client.events import follow
from tempa.client.exchange import exchange, read
from tempa.client.webhook_stream import follow_webhooks
from tempa.jobs.wire import CancelView, EventView, FileView, JobView, Page, Ticket
from tempa.settlement.wire import (
    AnomalyRedriven,
    AnomalyView,
    GpuInstanceView,
    LedgerLineView,
    PaymentView,
    QuoteView,
    RefundView,
    TreasuryView,
)
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

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from tempa.client.calls import (
        DeadLetterFilter,
        DeliveryFilter,
        EndpointOptions,
        JobFilter,
        ModelOptions,
        PriceOfInstance,
        Source,
        SplatOptions,
    )
    from tempa.client.effects import Answer, Call, Flow
    from tempa.client.exchange import Pace
    from tempa.jobs.wire import ArtifactView

Model = TypeVar("Model", bound=BaseModel)

_PAGE_ITEMS = 50
_DEAD_LETTERS = "/v1/webhooks/dead-letters"


class Document(RootModel[dict[str, Any]]):
    """Any JSON object."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """An admitted request. `replayed`: the server knew it already, nothing new was enqueued."""

    ticket: Ticket
    replayed: bool
    idempotency_key: str


@dataclass(frozen=True, slots=True)
class Operations:
    """Flows over one pace. `timeout_seconds` bounds one call, its repeats included."""

    pace: Pace
    timeout_seconds: float

    def submit(self, document: Mapping[str, Any], path: str, key: str | None) -> Flow[Accepted]:
        chosen = key or calls.new_idempotency_key()
        return self._admit(calls.submit(document, path, chosen), chosen)

    def generate_model(
        self, parameters: Mapping[str, Any] | None, options: ModelOptions, key: str | None
    ) -> Flow[Accepted]:
        return self.submit(calls.model_document(parameters, options), calls.GENERATE_MODEL, key)

    def generate_splat(
        self, inputs: Mapping[str, Path | Source | None], options: SplatOptions, key: str | None
    ) -> Flow[Accepted]:
        return self._submit_with(inputs, options, calls.GENERATE_SPLAT, key)

    def convert(
        self, inputs: Mapping[str, Path | Source | None], options: SplatOptions, key: str | None
    ) -> Flow[Accepted]:
        return self._submit_with(inputs, options, calls.CONVERT, key)

    def _submit_with(
        self,
        inputs: Mapping[str, Path | Source | None],
        options: SplatOptions,
        path: str,
        key: str | None,
    ) -> Flow[Accepted]:
        """Files of this machine are uploaded first: a request is known by their content, not by their ids."""
        document: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        for name, given in inputs.items():
            if isinstance(given, Path):
                stored = yield from self.upload(given, None)
                document |= calls.input_fields(name, {"file_id": stored.file_id})
            elif given is not None:
                document |= calls.input_fields(name, given)
        return (yield from self.submit(document, path, key))

    def retry(self, job_id: str, key: str | None) -> Flow[Accepted]:
        chosen = key or calls.new_idempotency_key()
        return self._admit(calls.retry(job_id, chosen), chosen)

    def job(self, job_id: str) -> Flow[JobView]:
        return self._read(JobView, calls.job(job_id))

    def wait(
        self, job_id: str, timeout_seconds: float | None, on_change: Callable[[JobView], None] | None
    ) -> Flow[JobView]:
        return waiting.wait(job_id, timeout_seconds, self.pace, self.timeout_seconds, on_change)

    def events(self, job_id: str, after: int) -> Flow[None]:
        return follow(job_id, after, self.pace, self.timeout_seconds)

    def feed(self, after: int) -> Flow[None]:
        """Emit the account's events behind position `after`, up to the newest."""
        position = after
        while True:
            call = calls.look("/v1/events", after=position)
            page = yield from self._read(Page[EventView], call)
            for event in page.items:
                position = max(position, event.position or position)
                yield Emit(event)
            if not page.items:
                return

    def jobs(self, limit: int | None, conditions: JobFilter) -> Flow[None]:
        return self._list("/v1/jobs", limit, JobView, **conditions)

    def cancel(self, job_id: str) -> Flow[CancelView]:
        return self._read(CancelView, calls.cancel(job_id))

    def delete(self, job_id: str) -> Flow[None]:
        yield from self._exchange(calls.delete(job_id))

    def upload(self, file: Path, key: str | None) -> Flow[FileView]:
        return self._read(FileView, calls.upload(file, key or calls.new_idempotency_key()))

    def download(
        self, source: str | JobView | ArtifactView, folder: Path, names: Collection[str] | None
    ) -> Flow[list[Path]]:
        return files.download(source, folder, names, self.pace, self._deadline())

    def document(self, path: str) -> Flow[dict[str, Any]]:
        """A GET that answers an object."""
        return (yield from self._read(Document, calls.look(path))).root

    def documents(self, path: str) -> Flow[list[dict[str, Any]]]:
        """A GET that answers a short list, whole."""
        return [item.root for item in (yield from self._all(Document, path))]

    def deliveries(self, limit: int | None, conditions: DeliveryFilter) -> Flow[None]:
        return self._list("/v1/webhooks/deliveries", limit, DeliveryView, **conditions)

    def delivery(self, delivery_id: str) -> Flow[DeliveryRecord]:
        path = f"/v1/webhooks/deliveries/{quote(delivery_id, safe='')}"
        return self._read(DeliveryRecord, calls.look(path))

    def dead_letters(self) -> Flow[list[DeadGroupView]]:
        return self._all(DeadGroupView, _DEAD_LETTERS)

    def dead_letters_in(self, group: str, limit: int | None) -> Flow[None]:
        return self._list(_DEAD_LETTERS, limit, DeliveryView, group=group)

    def redrive(
        self, conditions: DeadLetterFilter, rate_per_second: float | None, *, dry_run: bool
    ) -> Flow[Redriven]:
        document = calls.redrive_document(conditions, rate_per_second, dry_run=dry_run)
        return self._read(Redriven, calls.post(f"{_DEAD_LETTERS}/redrive", document))

    def discard(self, delivery_ids: Sequence[str], reason: str) -> Flow[Discarded]:
        document = {"delivery_ids": list(delivery_ids), "reason": reason}
        return self._read(Discarded, calls.post(f"{_DEAD_LETTERS}/discard", document))

    def endpoints(self, limit: int | None) -> Flow[None]:
        return self._list(calls.ENDPOINTS, limit, EndpointView)

    def endpoint(self, endpoint_id: str) -> Flow[EndpointView]:
        return self._read(EndpointView, calls.look(calls.endpoint(endpoint_id)))

    def register_endpoint(
        self, url: str, signing: str | None, options: EndpointOptions
    ) -> Flow[EndpointSecret]:
        asked = {"url": url, **options, **({"signing": signing} if signing else {})}
        return self._read(EndpointSecret, calls.register_endpoint(asked))

    def change_endpoint(
        self, endpoint_id: str, url: str | None, options: EndpointOptions
    ) -> Flow[EndpointView]:
        asked = {**options, **({"url": url} if url else {})}
        return self._read(EndpointView, calls.change_endpoint(endpoint_id, asked))

    def rotate_endpoint(self, endpoint_id: str, overlap_seconds: float | None) -> Flow[EndpointSecret]:
        return self._read(EndpointSecret, calls.rotate_endpoint(endpoint_id, overlap_seconds))

    def pause_endpoint(self, endpoint_id: str) -> Flow[EndpointView]:
        return self._read(EndpointView, calls.post(calls.endpoint(endpoint_id) + "/pause"))

    def resume_endpoint(self, endpoint_id: str) -> Flow[EndpointView]:
        return self._read(EndpointView, calls.post(calls.endpoint(endpoint_id) + "/resume"))

    def test_endpoint(self, endpoint_id: str) -> Flow[TestSent]:
        return self._read(TestSent, calls.post(calls.endpoint(endpoint_id) + "/test"))

    def remove_endpoint(self, endpoint_id: str) -> Flow[None]:
        yield from self._exchange(calls.remove_endpoint(endpoint_id))

    def webhooks(self, events: Sequence[str], after: int | None) -> Flow[None]:
        return follow_webhooks(events, after, self.pace, self.timeout_seconds)

    def gpu_instances(self, limit: int | None) -> Flow[None]:
        return self._list(calls.GPU_INSTANCES, limit, GpuInstanceView)

    def gpu_instance(self, gpu_instance_id: str) -> Flow[GpuInstanceView]:
        return self._read(GpuInstanceView, calls.look(calls.gpu_instance(gpu_instance_id)))

    def add_gpu_instance(self, name: str, prices: Sequence[PriceOfInstance]) -> Flow[GpuInstanceView]:
        return self._read(GpuInstanceView, calls.add_gpu_instance(name, prices))

    def change_prices(self, gpu_instance_id: str, prices: Sequence[PriceOfInstance]) -> Flow[GpuInstanceView]:
        return self._read(GpuInstanceView, calls.change_prices(gpu_instance_id, prices))

    def suspend_gpu_instance(self, gpu_instance_id: str) -> Flow[GpuInstanceView]:
        return self._read(GpuInstanceView, calls.post(calls.gpu_instance(gpu_instance_id) + "/suspend"))

    def resume_gpu_instance(self, gpu_instance_id: str) -> Flow[GpuInstanceView]:
        return self._read(GpuInstanceView, calls.post(calls.gpu_instance(gpu_instance_id) + "/resume"))

    def ask_quote(self, gpu_instance_id: str, asset: str, seconds: int) -> Flow[QuoteView]:
        return self._read(QuoteView, calls.ask_quote(gpu_instance_id, asset, seconds))

    def quotes(self, limit: int | None) -> Flow[None]:
        return self._list(calls.QUOTES, limit, QuoteView)

    def quote(self, quote_id: str) -> Flow[QuoteView]:
        return self._read(QuoteView, calls.look(calls.quote_at(quote_id)))

    def quote_qr(self, quote_id: str) -> Flow[bytes]:
        return (yield from self._exchange(calls.look(calls.quote_at(quote_id) + "/qr"))).body

    def payment(self, signature: str) -> Flow[PaymentView]:
        return self._read(PaymentView, calls.look(calls.payment(signature)))

    def proof(self, signature: str) -> Flow[dict[str, Any]]:
        return self.document(calls.payment(signature) + "/proof")

    def ledger(self, limit: int | None, account: str | None) -> Flow[None]:
        return self._list(calls.LEDGER, limit, LedgerLineView, account=account)

    def ledger_csv(self, account: str | None) -> Flow[bytes]:
        return (yield from self._exchange(calls.look(calls.LEDGER, format="csv", account=account))).body

    def anomalies(self, limit: int | None) -> Flow[None]:
        return self._list(calls.ANOMALIES, limit, AnomalyView)

    def anomaly(self, anomaly_id: str) -> Flow[AnomalyView]:
        return self._read(AnomalyView, calls.look(calls.anomaly(anomaly_id)))

    def redrive_anomaly(self, anomaly_id: str) -> Flow[AnomalyRedriven]:
        return self._read(AnomalyRedriven, calls.post(calls.anomaly(anomaly_id) + "/redrive"))

    def resolve_anomaly(self, anomaly_id: str, resolution: str, quote_id: str | None) -> Flow[AnomalyView]:
        return self._read(AnomalyView, calls.resolve_anomaly(anomaly_id, resolution, quote_id))

    def refunds(self, limit: int | None) -> Flow[None]:
        return self._list(calls.REFUNDS, limit, RefundView)

    def refund(self, refund_id: str) -> Flow[RefundView]:
        return self._read(RefundView, calls.look(calls.refund(refund_id)))

    def ask_refund(
        self, recipient: str, anomaly_id: str | None, signature: str | None, note: str | None
    ) -> Flow[RefundView]:
        return self._read(RefundView, calls.ask_refund(recipient, anomaly_id, signature, note))

    def give_up_refund(self, refund_id: str, reason: str) -> Flow[RefundView]:
        return self._read(RefundView, calls.give_up_refund(refund_id, reason))

    def treasury(self) -> Flow[TreasuryView]:
        return self._read(TreasuryView, calls.look(calls.TREASURY))

    def create_key(self, name: str, scopes: Sequence[str]) -> Flow[dict[str, Any]]:
        return (yield from self._read(Document, calls.create_key(name, scopes))).root

    def revoke_key(self, key_id: str) -> Flow[None]:
        yield from self._exchange(calls.revoke_key(key_id))

    def _admit(self, call: Call, key: str) -> Flow[Accepted]:
        answer = yield from self._exchange(call)
        replayed = answer.headers.get("idempotency-replayed", "").lower() == "true"
        return Accepted(read(Ticket, answer), replayed, key)

    def _all(self, model: type[Model], path: str) -> Flow[list[Model]]:
        return (yield from self._read(Page[model], calls.look(path))).items  # type: ignore[valid-type]

    def _list(self, path: str, limit: int | None, model: type[BaseModel], **query: Any) -> Flow[None]:
        """Emit the items of a list, page by page."""
        cursor: str | None = None
        left = limit
        while left is None or left > 0:
            count = left if left is not None and left < _PAGE_ITEMS else None  # else the server's own
            call = calls.look(path, limit=count, cursor=cursor, **query)
            page = yield from self._read(Page[model], call)  # type: ignore[valid-type]
            for item in page.items[:left]:
                yield Emit(item)
            left = None if left is None else left - len(page.items)
            cursor = page.next_cursor
            if cursor is None:
                return

    def _read(self, model: type[Model], call: Call) -> Flow[Model]:
        return read(model, (yield from self._exchange(call)))

    def _exchange(self, call: Call) -> Flow[Answer]:
        return exchange(call, self.pace, self._deadline())

    def _deadline(self) -> float:
        return self.pace.monotonic() + self.timeout_seconds
