"""The client's calls about renting GPUs and paying for them. `async_settlement.py` has the same, awaited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tempa.client.calls import PriceOfInstance
    from tempa.client.drivers import Driver
    from tempa.client.operations import Operations
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


class Settlement:
    """A part of `Client`."""

    _driver: Driver
    _do: Operations

    # Renting

    def gpu_instances(self, *, limit: int | None = None) -> Iterator[GpuInstanceView]:
        """All GPU instances, oldest first, whoever rents them."""
        return self._driver.iterate(self._do.gpu_instances(limit))

    def gpu_instance(self, gpu_instance_id: str) -> GpuInstanceView:
        """Whether it is free, what it costs, and until when it is rented."""
        return self._driver.run(self._do.gpu_instance(gpu_instance_id))

    def add_gpu_instance(self, name: str, prices: Sequence[PriceOfInstance]) -> GpuInstanceView:
        """Offer one for rent, each price in another asset. For the operator."""
        return self._driver.run(self._do.add_gpu_instance(name, prices))

    def change_prices(self, gpu_instance_id: str, prices: Sequence[PriceOfInstance]) -> GpuInstanceView:
        """Give one other prices; open quotes keep theirs. For the operator."""
        return self._driver.run(self._do.change_prices(gpu_instance_id, prices))

    def suspend_gpu_instance(self, gpu_instance_id: str) -> GpuInstanceView:
        """Let nobody use one; its renter's time stands still. For the operator."""
        return self._driver.run(self._do.suspend_gpu_instance(gpu_instance_id))

    def resume_gpu_instance(self, gpu_instance_id: str) -> GpuInstanceView:
        """Let it be used again, with the time that was left. For the operator."""
        return self._driver.run(self._do.resume_gpu_instance(gpu_instance_id))

    def ask_quote(self, gpu_instance_id: str, asset: str, seconds: int) -> QuoteView:
        """What so many seconds cost in `SOL` or a token (by its mint), at a price that is locked a while.

        Its `solana_pay_url` is for a wallet. Paying it needs no further call: `quote()` tells when it came.
        """
        return self._driver.run(self._do.ask_quote(gpu_instance_id, asset, seconds))

    def quotes(self, *, limit: int | None = None) -> Iterator[QuoteView]:
        """The account's quotes, newest first."""
        return self._driver.iterate(self._do.quotes(limit))

    def quote(self, quote_id: str) -> QuoteView:
        """One of them, and how far its payment is."""
        return self._driver.run(self._do.quote(quote_id))

    def quote_qr(self, quote_id: str) -> bytes:
        """Its Solana Pay URL as a QR code, in SVG."""
        return self._driver.run(self._do.quote_qr(quote_id))

    # Payments

    def payment(self, signature: str) -> PaymentView:
        """What became of a transaction that paid."""
        return self._driver.run(self._do.payment(signature))

    def proof(self, signature: str) -> dict[str, Any]:
        """What shows that a payment was credited, for whoever does not trust this server."""
        return self._driver.run(self._do.proof(signature))

    def ledger(self, *, limit: int | None = None, account: str | None = None) -> Iterator[LedgerLineView]:
        """What was credited to the account, oldest first. For the operator: to another, or to all (`*`)."""
        return self._driver.iterate(self._do.ledger(limit, account))

    def ledger_csv(self, *, account: str | None = None) -> bytes:
        """The whole ledger as CSV (RFC 4180, UTF-8), with the same columns."""
        return self._driver.run(self._do.ledger_csv(account))

    def anomalies(self, *, limit: int | None = None) -> Iterator[AnomalyView]:
        """What the operator has to look at, newest first: money that waits, lookups that came to nothing."""
        return self._driver.iterate(self._do.anomalies(limit))

    def anomaly(self, anomaly_id: str) -> AnomalyView:
        """One of them, with the whole call that told of it; also one that is resolved."""
        return self._driver.run(self._do.anomaly(anomaly_id))

    def redrive_anomaly(self, anomaly_id: str) -> AnomalyRedriven:
        """Try it again by the rules that hold now."""
        return self._driver.run(self._do.redrive_anomaly(anomaly_id))

    def resolve_anomaly(
        self, anomaly_id: str, resolution: str, *, quote_id: str | None = None
    ) -> AnomalyView:
        """Close it with words that stay on record; with `quote_id`, give its money to that quote."""
        return self._driver.run(self._do.resolve_anomaly(anomaly_id, resolution, quote_id))

    def refunds(self, *, limit: int | None = None) -> Iterator[RefundView]:
        """All refunds, newest first. For the operator."""
        return self._driver.iterate(self._do.refunds(limit))

    def refund(self, refund_id: str) -> RefundView:
        """One of them, with the transactions that were signed for it."""
        return self._driver.run(self._do.refund(refund_id))

    def ask_refund(
        self,
        recipient: str,
        *,
        anomaly_id: str | None = None,
        signature: str | None = None,
        note: str | None = None,
    ) -> RefundView:
        """Have all that waits in an anomaly, or of a payment, sent to a wallet. It cannot be called back.

        `recipient` is what whoever paid has named: money that goes back to an exchange's wallet is lost.
        """
        return self._driver.run(self._do.ask_refund(recipient, anomaly_id, signature, note))

    def give_up_refund(self, refund_id: str, reason: str) -> RefundView:
        """Have its money wait again; only while no transaction of it may land."""
        return self._driver.run(self._do.give_up_refund(refund_id, reason))

    def treasury(self) -> TreasuryView:
        """Where payments go, whether they are credited now, and who tells of them. For the operator."""
        return self._driver.run(self._do.treasury())
