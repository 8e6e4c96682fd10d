"""The table of metrics in a Prometheus registry of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from tempa.core.metrics import METRICS

if TYPE_CHECKING:
    from tempa.core.metrics import Metric

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class PrometheusMeter:
    """Implements `core.metrics.Meter`. A name that is not in the table is a programmer's error."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each, unread
        self._registry = CollectorRegistry()
        self._totals: dict[str, float] = {}
        self._metrics = {name: self._make(name, row) for name, row in METRICS.items()}

    def _make(self, name: str, row: Metric) -> Counter | Gauge | Histogram:
        if row.kind == "counter":
            return Counter(name, row.help, row.labels, registry=self._registry)
        if row.kind == "gauge":
            return Gauge(name, row.help, row.labels, registry=self._registry)
        return Histogram(name, row.help, row.labels, registry=self._registry, buckets=_BUCKETS)

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        metric = self._metrics[name]
        assert isinstance(metric, Counter)
        (metric.labels(**labels) if labels else metric).inc(amount)

    def total(self, name: str, value: float) -> None:
        """Bring a counter without labels up to what is counted elsewhere."""
        self.count(name, value - self._totals.get(name, 0.0))
        self._totals[name] = value

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Note a duration."""
        metric = self._metrics[name]
        assert isinstance(metric, Histogram)
        (metric.labels(**labels) if labels else metric).observe(seconds)

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        metric = self._metrics[name]
        assert isinstance(metric, Gauge)
        (metric.labels(**labels) if labels else metric).set(value)

    def render(self) -> tuple[bytes, str]:
        """The text exposition and its media type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST
