"""The calls of `settlement.py`, awaited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from tempa.client.async_drivers import AsyncDriver
    from tempa.client.calls import PriceOfInstance
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


class AsyncSettlement:
    """A part of `AsyncClient`."""

    _driver: AsyncDriver
    _do: Operations

    # Renting

    def gpu_instances(self, *, limit: int | None = None) -> AsyncGenerator[GpuInstanceView, None]:
        return self._driver.iterate(self._do.gpu_instances(limit))

    async def gpu_instance(self, gpu_instance_id: str) -> GpuInstanceView:
        return await self._driver.run(self._do.gpu_instance(gpu_instance_id))

    async def add_gpu_instance(self, name: str, prices: Sequence[PriceOfInstance]) -> GpuInstanceView:
        return await self._driver.run(self._do.add_gpu_instance(name, prices))

    async def change_prices(self, gpu_instance_id: str, prices: Sequence[PriceOfInstance]) -> GpuInstanceView:
        return await self._driver.run(self._do.change_prices(gpu_instance_id, prices))

    async def suspend_gpu_instance(self, gpu_instance_id: str) -> GpuInstanceView:
        return await self._driver.run(self._do.suspend_gpu_instance(gpu_instance_id))

    async def resume_gpu_instance(self, gpu_instance_id: str) -> GpuInstanceView:
        return await self._driver.run(self._do.resume_gpu_instance(gpu_instance_id))

    async def ask_quote(self, gpu_instance_id: str, asset: str, seconds: int) -> QuoteView:
        return await self._driver.run(self._do.ask_quote(gpu_instance_id, asset, seconds))

    def quotes(self, *, limit: int | None = None) -> AsyncGenerator[QuoteView, None]:
        return self._driver.iterate(self._do.quotes(limit))

    async def quote(self, quote_id: str) -> QuoteView:
        return await self._driver.run(self._do.quote(quote_id))

    async def quote_qr(self, quote_id: str) -> bytes:
        return await self._driver.run(self._do.quote_qr(quote_id))

    # Payments

    async def payment(self, signature: str) -> PaymentView:
        return await self._driver.run(self._do.payment(signature))

    async def proof(self, signature: str) -> dict[str, Any]:
        return await self._driver.run(self._do.proof(signature))

    def ledger(
        self, *, limit: int | None = None, account: str | None = None
    ) -> AsyncGenerator[LedgerLineView, None]:
        return self._driver.iterate(self._do.ledger(limit, account))

    async def ledger_csv(self, *, account: str | None = None) -> bytes:
        return await self._driver.run(self._do.ledger_csv(account))

    def anomalies(self, *, limit: int | None = None) -> AsyncGenerator[AnomalyView, None]:
        return self._driver.iterate(self._do.anomalies(limit))

    async def anomaly(self, anomaly_id: str) -> AnomalyView:
        return await self._driver.run(self._do.anomaly(anomaly_id))

    async def redrive_anomaly(self, anomaly_id: str) -> AnomalyRedriven:
        return await self._driver.run(self._do.redrive_anomaly(anomaly_id))

    async def resolve_anomaly(
        self, anomaly_id: str, resolution: str, *, quote_id: str | None = None
    ) -> AnomalyView:
        return await self._driver.run(self._do.resolve_anomaly(anomaly_id, resolution, quote_id))

    def refunds(self, *, limit: int | None = None) -> AsyncGenerator[RefundView, None]:
        return self._driver.iterate(self._do.refunds(limit))

    async def refund(self, refund_id: str) -> RefundView:
        return await self._driver.run(self._do.refund(refund_id))

    async def ask_refund(
        self,
        recipient: str,
        *,
        anomaly_id: str | None = None,
        signature: str | None = None,
        note: str | None = None,
    ) -> RefundView:
        return await self._driver.run(self._do.ask_refund(recipient, anomaly_id, signature, note))

    async def give_up_refund(self, refund_id: str, reason: str) -> RefundView:
        return await self._driver.run(self._do.give_up_refund(refund_id, reason))

    async def treasury(self) -> TreasuryView:
        return await self._driver.run(self._do.treasury())
