"""A statement against the chain: whether each credit of a ledger was paid, and bought what it says.

A statement is what `GET /v1/ledger` gives, as JSON or CSV, of one account or of all. What it lacks it cannot
show: that no payment is missing is for reconciliation and `rebuild`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from tempa.core.base58 import is_signature
from tempa.settlement.post import entitled_seconds, with_payment
from tempa.settlement.quorum import Held
from tempa.settlement.quotes import Leg, Price

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Awaitable, Callable, Mapping

    from tempa.settlement.model import Verdict
    from tempa.settlement.quorum import Agreed

LOOKUPS_AT_ONCE = 16
SHOWN_MAX = 1000  # differences that are told one by one; all are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementLine:
    """One credit. `place`: which line of the statement, from 1; `price` None: it does not tell."""

    place: int
    signature: str
    account: str
    quote_id: str
    asset: str
    amount: int
    seconds: int
    slot: int
    block_time: int | None
    price: Price | None


class Difference(NamedTuple):
    """What a statement says otherwise than the chain, or than its own sums."""

    place: int
    signature: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of it. `sums`: credited by (account, asset), base units; `seconds` by account.

    `differences` are the first of `difference_count`; `unchecked` those transactions that no node, or too
    few, could tell of: by signature, the code of the reason.
    """

    lines: int
    transactions: int
    sums: Mapping[tuple[str, str], int]
    seconds: Mapping[str, int]
    differences: tuple[Difference, ...]
    difference_count: int
    unchecked: Mapping[str, str]

    @property
    def holds(self) -> bool:
        """Whether all of it was checked, and is as the chain shows it."""
        return not self.difference_count and not self.unchecked


def read_line(place: int, row: Mapping[str, Any]) -> StatementLine | Difference:
    """A line of a statement, from JSON (values) or CSV (texts)."""
    signature = str(row.get("tx_signature", ""))
    try:
        return StatementLine(
            place=place,
            signature=_signature(signature),
            account=str(row["account"]),
            quote_id=str(row["quote_id"]),
            asset=str(row["asset"]),
            amount=_whole(row["amount"]),
            seconds=_whole(row["rent_seconds_added"]),
            slot=_whole(row["slot"]),
            block_time=_time(row["block_time"]),
            price=_price(row.get("price")),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        return Difference(place, signature[:90], f"This is no line of a ledger: {error!r}."[:300])


def _signature(text: str) -> str:
    if not is_signature(text):
        raise ValueError("no signature")
    return text


def _whole(value: Any) -> int:
    text = str(value)
    if not text.isascii() or not text.isdecimal() or len(text) > 20:
        raise ValueError(text[:30])
    return int(text)


def _time(value: Any) -> int | None:
    return None if value in {None, ""} else int(datetime.fromisoformat(str(value)).timestamp())


def _price(value: Any) -> Price | None:
    if value in {None, ""}:
        return None
    numerator, _, denominator = str(value).partition("/")
    price = Price(_whole(numerator), _whole(denominator))
    if 0 in price:
        raise ValueError("a price of nothing")
    return price


async def verify_statement(
    lines: AsyncIterable[StatementLine | Difference],
    chain_check: Callable[[str], Awaitable[Agreed | Held]],
    *,
    lookups_at_once: int = LOOKUPS_AT_ONCE,
    is_whole: bool = True,
    told: Callable[[int], None] = lambda _: None,
) -> Report:
    """Ask the chain about each line, a few at once, and add up.

    Args:
        lines: In the order of the ledger; read as they are needed.
        chain_check: What nodes agree on about a transaction: `Quorum.check`, or what waits and asks again.
        lookups_at_once: How many transactions are asked for at a time.
        is_whole: Whether it begins with each quote's first payment: else its seconds may be one off, for
            what was left of a second before.
        told: Called with the number of lines that are done, for progress.

    Memory: 8 bytes and a set's entry for each transaction, and a sum for each quote.
    """
    audit = _Audit(is_whole=is_whole)
    window: deque[tuple[StatementLine, asyncio.Task[Agreed | Held] | None]] = deque()
    asked: dict[str, asyncio.Task[Agreed | Held]] = {}
    try:
        async for line in lines:
            if isinstance(line, Difference):
                audit.differ(line)
                audit.lines += 1
                continue
            if not audit.knows(line) and line.signature not in asked:
                asked[line.signature] = asyncio.ensure_future(chain_check(line.signature))
            window.append((line, asked.get(line.signature)))
            if len(window) >= lookups_at_once:
                await _take_first(window, asked, audit, told)
        while window:
            await _take_first(window, asked, audit, told)
    finally:
        for task in asked.values():
            task.cancel()
    return audit.report()


async def _take_first(
    window: deque[tuple[StatementLine, asyncio.Task[Agreed | Held] | None]],
    asked: dict[str, asyncio.Task[Agreed | Held]],
    audit: _Audit,
    told: Callable[[int], None],
) -> None:
    line, task = window.popleft()
    audit.take(line, None if task is None else await task)
    if all(line.signature != other.signature for other, _ in window):
        asked.pop(line.signature, None)
    told(audit.lines)


@dataclass(slots=True)
class _Paid:
    """What a transaction paid by the chain, and is not credited by the lines so far."""

    slot: int
    block_time: int | None
    left: dict[str, int]


@dataclass(slots=True)
class _Audit:
    """The statement so far."""

    is_whole: bool
    lines: int = 0
    transactions: int = 0
    _paid: dict[str, _Paid] = field(default_factory=dict)  # those that have something left
    _spent: set[int] = field(default_factory=set)  # the others, by their hash: a signature takes 137 bytes
    _quotes: dict[str, tuple[tuple[Leg, ...], int]] = field(default_factory=dict)
    _sums: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    _seconds: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _shown: list[Difference] = field(default_factory=list)
    _differences: int = 0
    _unchecked: dict[str, str] = field(default_factory=dict)

    def knows(self, line: StatementLine) -> bool:
        """Whether the chain was asked about its transaction already."""
        return line.signature in self._paid or _mark(line.signature) in self._spent

    def take(self, line: StatementLine, found: Agreed | Held | None) -> None:
        """The next line. `found`: of a transaction that the chain was asked about for it."""
        self.lines += 1
        self._sums[line.account, line.asset] += line.amount
        self._seconds[line.account] += line.seconds
        self._take_seconds(line)
        if not self.knows(line) and found is not None:
            if isinstance(found, Held):
                self._unchecked[line.signature] = found.reason
                return
            self._learn(line, found.verdict)
        self._take_payment(line)

    def differ(self, difference: Difference) -> None:
        """Count it, and show it if there is room."""
        self._differences += 1
        if len(self._shown) < SHOWN_MAX:
            self._shown.append(difference)

    def report(self) -> Report:
        """All of it."""
        return Report(
            lines=self.lines,
            transactions=self.transactions,
            sums=dict(self._sums),
            seconds=dict(self._seconds),
            differences=tuple(self._shown),
            difference_count=self._differences,
            unchecked=dict(self._unchecked),
        )

    def _learn(self, line: StatementLine, verdict: Verdict) -> None:
        self.transactions += 1
        left: dict[str, int] = defaultdict(int)
        for receipt in verdict.receipts:
            left[receipt.asset] += receipt.amount
        if not left:
            self._differ(line, f"by the chain nothing was paid to the treasury by it: {verdict.reason}")
            self._spent.add(_mark(line.signature))
            return
        times = (receipt.block_time for receipt in verdict.receipts)
        self._paid[line.signature] = _Paid(verdict.slot or 0, next(times), dict(left))

    def _take_payment(self, line: StatementLine) -> None:
        paid = self._paid.get(line.signature)
        left = 0 if paid is None else paid.left.get(line.asset, 0)
        if line.amount > left:
            self._differ(line, f"it credits {line.amount} of {line.asset}; the chain shows {left} left")
        if paid is None:
            return
        if paid.slot != line.slot:
            self._differ(line, f"it is of slot {paid.slot} and not {line.slot}")
        if None not in {paid.block_time, line.block_time} and paid.block_time != line.block_time:
            self._differ(line, f"its block is of {paid.block_time} and not {line.block_time} (Unix seconds)")
        paid.left[line.asset] = max(0, left - line.amount)
        if not any(paid.left.values()):
            del self._paid[line.signature]
            self._spent.add(_mark(line.signature))

    def _take_seconds(self, line: StatementLine) -> None:
        """Whole seconds of all that the quote was paid so far; what is left of one is carried."""
        if line.price is None:
            return
        legs, before = self._quotes.get(line.quote_id, ((), 0))
        legs = with_payment(legs, line.price, line.amount)
        bought = entitled_seconds(legs) - before
        self._quotes[line.quote_id] = legs, before + line.seconds
        slack = range(2) if not self.is_whole else range(1)
        if line.seconds - bought not in slack:
            self._differ(line, f"it buys {bought} s and not {line.seconds}")
            self._quotes[line.quote_id] = legs, before + bought  # told once, not with every later payment

    def _differ(self, line: StatementLine, words: str) -> None:
        self.differ(Difference(line.place, line.signature, words))


def _mark(signature: str) -> int:
    """64 bits: two of a million signatures share one in 40 million cases."""
    return int.from_bytes(blake2b(signature.encode(), digest_size=8).digest(), "big")
