"""Which quote a receipt is for, or why none can be told: then it waits in suspense (rules V12 and V13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.settlement.model import Attribution, Share

if TYPE_CHECKING:
    from collections.abc import Collection

    from tempa.settlement.model import Invoice, Part, Receipt

_MEMO_PREFIX = "tempa:"


def memo_for(quote_id: str) -> str:
    """The memo that names a quote, where a wallet cannot add a reference."""
    return _MEMO_PREFIX + quote_id


def memo_quotes(receipt: Receipt) -> frozenset[str]:
    """Ids of the quotes that the receipt's memos name; nobody has said yet that they exist."""
    return frozenset(
        memo.removeprefix(_MEMO_PREFIX).strip() for memo in receipt.memos if memo.startswith(_MEMO_PREFIX)
    )


def attribute(receipt: Receipt, invoices: Collection[Invoice]) -> Attribution:
    """To which of `invoices` the receipt belongs.

    Args:
        receipt: As the chain shows it.
        invoices: All quotes that its references or memos name, whatever their state: whether one may still
            be paid is decided when the receipt is posted.

    References come first, memos second; where both name quotes they must agree. Several quotes share one
    receipt only if its transfers are known one by one and each names exactly one of them.
    """
    named = [invoice for invoice in invoices if invoice.reference in receipt.references]
    noted = [invoice for invoice in invoices if invoice.quote_id in memo_quotes(receipt)]
    fitting = {invoice.quote_id for invoice in named if invoice.asset == receipt.asset}
    fitting_notes = {invoice.quote_id for invoice in noted if invoice.asset == receipt.asset}
    if fitting and fitting_notes and fitting != fitting_notes:
        return Attribution(reason="memo_mismatch")
    if len(fitting) > 1:
        return _shared(receipt, [one for one in named if one.asset == receipt.asset])
    if not fitting and named:
        return Attribution(reason="asset_mismatch")
    return _single(receipt, fitting or fitting_notes, known=bool(noted))


def _single(receipt: Receipt, quotes: set[str], *, known: bool) -> Attribution:
    if not quotes:
        return Attribution(reason="asset_mismatch" if known else "no_reference")
    if len(quotes) > 1:
        return Attribution(reason="several_quotes")
    return Attribution((Share(quotes.pop(), receipt.amount),))


def _shared(receipt: Receipt, invoices: Collection[Invoice]) -> Attribution:
    quotes = {invoice.reference: invoice.quote_id for invoice in invoices}
    amounts: dict[str, int] = {}
    for part in receipt.parts:
        names = _names(part, quotes)
        if len(names) != 1:
            return Attribution(reason="several_quotes")
        amounts[names[0]] = amounts.get(names[0], 0) + part.amount
    if sum(amounts.values()) != receipt.amount:
        return Attribution(reason="several_quotes")
    return Attribution(tuple(Share(quote_id, amount) for quote_id, amount in amounts.items()))


def _names(part: Part, quotes: dict[str, str]) -> list[str]:
    return [quotes[reference] for reference in part.references if reference in quotes]
