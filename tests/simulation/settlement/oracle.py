"""What each quote must have been credited, from the chain's own accounts and what each payment was made for.

Nothing of Tempa's verifier is asked: a gain is the difference of an account's bytes before and after, and for
whom it is was written down when the payment was made.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from solders.pubkey import Pubkey

from tempa.core.clock import to_ms
from tempa.settlement.journal import UNALLOCATED, customer_account, first_broken, treasury_account
from tempa.settlement.model import SOL
from tempa.testing.devchain.blocks import Commitment
from tests.simulation.settlement.ground import held

if TYPE_CHECKING:
    from tempa.settlement.post import Recorded
    from tempa.settlement.quotes import NewQuote, Price
    from tempa.testing.contracts.bench import Store
    from tempa.testing.devchain.blocks import Landed
    from tests.simulation.settlement.ground import Ground
    from tests.simulation.settlement.payments import Payment

ALL = 100_000


class Gain(NamedTuple):
    """What one treasury account gained by one transaction that is final."""

    signature: str
    asset: str
    account: str
    amount: int
    block_time: int


@dataclass(kw_only=True)
class Oracle:
    """Knows what was sent and what it was for. `by_hand`: an operator's acts, (signature, account) -> quote.

    - `contested`: instances that two renters have quotes for; who pays first has it.
    - `lock_tolerance_seconds`: of the terms.
    - `late_price`: what an instance costs now, by (instance, asset).
    """

    ground: Ground
    quotes: list[NewQuote]
    late_price: dict[tuple[str, str], Price]
    lock_tolerance_seconds: int
    contested: frozenset[str]
    sent: dict[str, Payment] = field(default_factory=dict)
    by_hand: dict[tuple[str, str], str] = field(default_factory=dict)

    def gains(self) -> list[Gain]:
        """All, of transactions that are final and went through."""
        return [gain for landed in self._final() for gain in self._gains(landed)]

    def gains_of(self, signature: str) -> set[tuple[str, str, int]]:
        """What a transaction brought, if it is final and went through: (asset, account, amount)."""
        landed = self.ground.chain.find(signature)
        if landed is None or not self._is_final(landed):
            return set()
        return {(gain.asset, gain.account, gain.amount) for gain in self._gains(landed)}

    def final(self) -> dict[str, bool]:
        """Signatures of all that is final, and whether it moved money of the treasury's."""
        return {landed.signature: self._moves(landed) for landed in self._final()}

    def _moves(self, landed: Landed) -> bool:
        done = landed.execution
        moved = zip(done.keys.all, done.before, done.after, strict=True)
        return any(str(key) in self.ground.accounts and before != after for key, before, after in moved)

    def strays(self) -> set[str]:
        """Signatures that brought what is not taken here."""
        final = {landed.signature for landed in self._final() if landed.execution.err is None}
        return {name for name in final if name in self.sent and self.sent[name].stray}

    def shares(self) -> dict[str, list[tuple[int, Price]]]:
        """By quote: each amount it must have been given, and at which price."""
        quotes = {quote.id: quote for quote in self.quotes}
        found: dict[str, list[tuple[int, Price]]] = defaultdict(list)
        for gain in self.gains():
            for quote_id, amount in self._meant(gain):
                quote = quotes[quote_id]
                found[quote_id].append((amount, self._price(quote, gain)))
        return found

    def late_credits(self) -> int:
        """How many parts were credited at another price than their quote's."""
        locked = {
            quote.id: quote.price for quote in self.quotes if quote.gpu_instance_id not in self.contested
        }
        found = self.shares()
        return sum(price != locked[name] for name in found if name in locked for _, price in found[name])

    def _price(self, quote: NewQuote, gain: Gain) -> Price:
        locked_until = to_ms(quote.expires_at) // 1000 + self.lock_tolerance_seconds
        late = gain.block_time > locked_until
        return self.late_price[quote.gpu_instance_id, quote.asset] if late else quote.price

    def _meant(self, gain: Gain) -> list[tuple[str, int]]:
        payment = self.sent.get(gain.signature)
        meant = () if payment is None else payment.meant
        shares = [
            (one.quote_id, gain.amount if one.amount is None else one.amount)
            for one in meant
            if one.asset == gain.asset and one.quote_id is not None
        ]
        given = self.by_hand.get((gain.signature, gain.account))
        return [(given, gain.amount)] if given is not None and not shares else shares

    def _final(self) -> list[Landed]:
        accounts = {str(self.ground.treasury.key)}
        accounts |= set(self.ground.accounts)
        accounts |= set(self._others())
        found = {
            landed.signature: landed
            for account in sorted(accounts)
            for landed in self.ground.chain.history(account)
            if self._is_final(landed)
        }
        return list(found.values())

    def _others(self) -> list[str]:
        """The payers' wallets: what goes to an unlisted account names none that is listed."""
        return [str(wallet.key) for wallet in (*self.ground.renters, self.ground.stranger)]

    def _is_final(self, landed: Landed) -> bool:
        return landed.slot <= self.ground.chain.block(Commitment.FINALIZED).slot

    def _gains(self, landed: Landed) -> list[Gain]:
        if landed.execution.err is not None:
            return []
        gains = []
        keys = landed.execution.keys.all
        assets = self.ground.accounts
        for key, before, after in zip(keys, landed.execution.before, landed.execution.after, strict=True):
            asset = assets.get(str(key))
            if asset is None:
                continue
            gain = held(after, asset) - held(before, asset)
            if asset == SOL and key == keys[0]:
                gain += landed.execution.meta.fee()
            if gain > 0:
                assert landed.block.time is not None
                gains.append(Gain(landed.signature, asset, str(key), gain, landed.block.time))
        return gains


async def check_receipt(oracle: Oracle, recorded: Recorded) -> None:
    """I2, I3, I9: what is credited is final, went through, and is what the chain's accounts gained."""
    receipt = recorded.receipt
    told = (receipt.asset, receipt.account, receipt.amount)
    assert told in oracle.gains_of(receipt.signature), f"{told} by {receipt.signature} never came in"


async def check_books(oracle: Oracle, store: Store) -> int:
    """I1, I2, I4, I5: the ledger against the chain, added up in four ways; how many credits there are."""
    await _check_flows(oracle, store)
    recorded = await store.receipts(0, ALL)
    places = [(one.receipt.signature, one.receipt.asset, one.receipt.account) for one in recorded]
    assert len(set(places)) == len(places), "credited twice"
    gains = {(gain.signature, gain.asset, gain.account): gain.amount for gain in oracle.gains()}
    assert {place: one.receipt.amount for place, one in zip(places, recorded, strict=True)} == gains
    await _check_journal(store, recorded)
    return sum(len(one.allocations) for one in recorded)


async def _check_flows(oracle: Oracle, store: Store) -> None:
    final = oracle.ground.chain.block(Commitment.FINALIZED).slot
    flows = await store.flows()
    for address, asset in oracle.ground.accounts.items():
        account = oracle.ground.chain.account(Pubkey.from_string(address), final)
        booked = flows.get((asset, address))
        assert held(account, asset) == (0 if booked is None else booked.received - booked.sent), asset


async def _check_journal(store: Store, recorded: list[Recorded]) -> None:
    entries = await store.journal(0, ALL)
    assert first_broken(entries) is None
    sums: dict[tuple[int, str], int] = defaultdict(int)
    for entry in entries:
        for line in entry.draft.postings:
            sums[entry.number, line.asset] += line.amount
    assert not any(sums.values()), "an entry does not sum to zero"
    balances = await store.balances()
    waiting: dict[str, int] = defaultdict(int)
    owed: dict[tuple[str, str], int] = defaultdict(int)
    for one in recorded:
        waiting[one.receipt.asset] += one.receipt.amount - sum(part.amount for part in one.allocations)
        for part in one.allocations:
            owed[part.account, one.receipt.asset] += part.amount
    shown: dict[str, int] = defaultdict(int)
    booked = {(one.receipt.signature, one.receipt.account) for one in recorded}
    for anomaly in await store.anomalies(ALL, None):
        if anomaly.receipt is not None and anomaly.asset is not None:
            shown[anomaly.asset] += anomaly.amount or 0
        elif anomaly.amount is not None:
            assert (anomaly.signature, anomaly.account) not in booked, "booked, and shown as not taken"
    for asset, amount in waiting.items():
        assert balances.get((UNALLOCATED, asset), 0) == -amount, f"suspense of {asset}"
        assert shown[asset] == amount, f"what waits in {asset} is not shown"
        assert balances[treasury_account(asset), asset] == sum(
            flow.received - flow.sent for (which, _), flow in (await store.flows()).items() if which == asset
        )
    for (account, asset), amount in owed.items():
        assert balances[customer_account(account), asset] == -amount


async def check_quotes(oracle: Oracle, store: Store, *, may_change_hands: bool) -> None:
    """I4, I6, I7: each quote has what was paid for it, its owner the seconds, rounded down once."""
    shares = oracle.shares()
    recorded = await store.receipts(0, ALL)
    given = [part for one in recorded for part in one.allocations]
    for quote in oracle.quotes:
        mine = [part for part in given if part.quote_id == quote.id]
        owners = {(part.account, part.gpu_instance_id) for part in mine}
        assert owners <= {(quote.account, quote.gpu_instance_id)}
        shown = await store.quote(quote.account, quote.id)
        assert shown is not None
        legs = shares.get(quote.id, [])
        if quote.gpu_instance_id in oracle.contested:  # who pays first has it, and nobody beside him
            others = {one.account for one in given if one.gpu_instance_id == quote.gpu_instance_id}
            assert len(others) < 2 or may_change_hands
            assert sum(part.amount for part in mine) <= sum(amount for amount, _ in legs)
            continue
        assert shown.paid == sum(amount for amount, _ in legs), quote.id
        bought = sum((amount * Fraction(*price) for amount, price in legs), Fraction())
        assert shown.granted_seconds == int(bought)
        assert sum(part.seconds for part in mine) == shown.granted_seconds
