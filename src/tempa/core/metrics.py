"""Every metric, in one closed table: `/metrics` shows them and the reference page is made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its kind, what it tells, its labels."""

    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()


METRICS: Mapping[str, Metric] = {
    "tempa_jobs_admitted_total": Metric("counter", "Jobs admitted, by engine.", ("engine",)),
    "tempa_jobs_replayed_total": Metric("counter", "Requests answered with a job that stood.", ("engine",)),
    "tempa_jobs_refused_total": Metric(
        "counter", "Requests for jobs refused by a limit of their account, by the limit.", ("limit",)
    ),
    "tempa_jobs_ended_total": Metric(
        "counter",
        "Attempts that ended, by how: complete, fail, retry, cancel, release.",
        ("engine", "ending"),
    ),
    "tempa_jobs_cached_total": Metric(
        "counter", "Jobs completed with the result of equal work; no kernel ran for them.", ("engine",)
    ),
    "tempa_jobs": Metric("gauge", "Jobs in the store, by status and lane.", ("status", "lane")),
    "tempa_jobs_wait_seconds": Metric("histogram", "From admission to the first claim.", ("engine",)),
    "tempa_jobs_rescued_total": Metric("counter", "Jobs taken over because their lease ran out."),
    "tempa_engine_runs_total": Metric(
        "counter", "Kernel executions; outcome is completed or an error code.", ("engine", "outcome")
    ),
    "tempa_engine_run_seconds": Metric("histogram", "Time in the kernel's process.", ("engine",)),
    "tempa_webhook_attempts_total": Metric(
        "counter", "Delivery attempts, by outcome: delivered, retry, dead.", ("outcome",)
    ),
    "tempa_webhook_attempt_seconds": Metric("histogram", "From the start of an attempt to its answer."),
    "tempa_webhook_delivery_seconds": Metric("histogram", "From an event to the 2xx that took it."),
    "tempa_webhook_dead_total": Metric(
        "counter", "Deliveries that came into the dead letters, by reason.", ("reason",)
    ),
    "tempa_webhook_healed_total": Metric(
        "counter", "Dead letters of an outage that were sent once more by themselves when it was over."
    ),
    "tempa_webhook_breakers_opened_total": Metric(
        "counter", "Times that three different deliveries to an endpoint failed in a row."
    ),
    "tempa_webhook_deliveries": Metric(
        "gauge", "Deliveries in the store that are not over, or dead, by status.", ("status",)
    ),
    "tempa_webhook_parked_endpoints": Metric(
        "gauge", "Endpoints whose deliveries are parked, by why: open (breaker), paused, disabled.", ("why",)
    ),
    "tempa_webhook_queue_lag_seconds": Metric(
        "gauge", "For how long a delivery could have been sent that still waits for a deliverer."
    ),
    "tempa_settlement_calls_total": Metric(
        "counter",
        "Calls to the payments' ingress, by how they were taken: accepted (something was new), duplicate,"
        " rejected (no signature in it), replayed, forged, unreadable, too_large, unavailable.",
        ("source", "outcome"),
    ),
    "tempa_settlement_heard_total": Metric(
        "counter",
        "Transactions that a subscription told of, by how they were taken: accepted, duplicate.",
        ("source", "outcome"),
    ),
    "tempa_settlement_gaps_total": Metric(
        "counter",
        "Times that a subscription may have missed something and a sweep was asked for, by why: connected (it"
        " began anew), refused, lost, silent, skipped (a slot), overflow.",
        ("source", "reason"),
    ),
    "tempa_settlement_source_up": Metric(
        "gauge", "1 while a subscription stands, 0 while it is made again.", ("source",)
    ),
    "tempa_settlement_lookups_total": Metric(
        "counter",
        "Lookups of payments on the chain, by what they came to: credited, suspended, or a reason's code.",
        ("outcome",),
    ),
    "tempa_settlement_credits_total": Metric(
        "counter", "Receipts posted: payments that came in, by asset (SOL, or the mint).", ("asset",)
    ),
    "tempa_settlement_credit_seconds": Metric(
        "histogram", "From the time of a payment's block to its posting. Blocks' times are whole seconds."
    ),
    "tempa_settlement_pending": Metric(
        "gauge", "Entries of the inbox that wait for a lookup, or the next one."
    ),
    "tempa_settlement_lag_seconds": Metric(
        "gauge", "For how long the oldest of them has waited. What no node ever shows stays, and is shown."
    ),
    "tempa_settlement_unmatched": Metric(
        "gauge", "Anomalies that are open, by the code of their reason.", ("reason",)
    ),
    "tempa_settlement_mismatch": Metric(
        "gauge",
        "What the chain says an account of the treasury holds, less what the ledger says, in base units,"
        " where two checks in a row found them different. It must be 0.",
        ("asset", "account"),
    ),
    "tempa_settlement_nodes": Metric(
        "gauge", "Nodes by whether they may be asked: usable, or the reason why not.", ("state",)
    ),
    "tempa_settlement_sweep_pages_total": Metric(
        "counter",
        "Pages of an account's history asked of a node, by outcome: read, or why it could not be.",
        ("node", "outcome"),
    ),
    "tempa_settlement_swept_total": Metric(
        "counter",
        "Transactions in those pages, by how the inbox took them: accepted, or duplicate of another page.",
        ("outcome",),
    ),
    "tempa_settlement_swept_timestamp_seconds": Metric(
        "gauge", "When a sweep last read the new part of every account, in Unix seconds."
    ),
    "tempa_settlement_reference_looks_total": Metric(
        "counter",
        "Looks for a quote's reference on a node, by outcome: read, or why it could not be.",
        ("outcome",),
    ),
    "tempa_settlement_expiries_total": Metric(
        "counter", "Rentals that time has moved on, by how far: warned, in_grace, ended.", ("step",)
    ),
    "tempa_store_commits_total": Metric("counter", "Commits of the store: flushes to disk."),
    "tempa_store_commands_total": Metric("counter", "Commands in those commits; several share one."),
    "tempa_store_failed_commits_total": Metric(
        "counter", "Commits that failed; nothing of them was acknowledged."
    ),
}


class Meter(Protocol):
    """Counts and measures. Names are keys of `METRICS`; labels must be those of the row."""

    def count(self, name: str, amount: float = 1, **labels: str) -> None: ...
    def observe(self, name: str, seconds: float, **labels: str) -> None: ...
    def gauge(self, name: str, value: float, **labels: str) -> None: ...
