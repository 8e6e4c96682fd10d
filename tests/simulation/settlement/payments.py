"""Payments of every shape, each with what it is for by the words of the contract."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from solders.instruction import Instruction
from solders.pubkey import Pubkey

from tempa.settlement.model import SOL
from tempa.testing.devchain import instructions as make
from tempa.testing.devchain.programs import TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tempa.settlement.quotes import NewQuote
    from tempa.testing.devchain.wallet import Wallet
    from tests.simulation.settlement.ground import Ground

DUST = {"usd": 200, "SOL": 1_000}
_NOBODYS: None = None
_VERSIONS: tuple[int | str, ...] = ("legacy", "legacy", 0, 1)
_TOO_MUCH = 2**62


@dataclass(frozen=True, slots=True)
class Meant:
    """For which quote (None: for nobody's) a part of what came in an asset is; `amount` None: all of it."""

    asset: str
    quote_id: str | None
    amount: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """A transaction ready to send. `stray`: it brings what is not taken here; `shape` for the count."""

    shape: str
    raw: bytes
    meant: tuple[Meant, ...] = ()
    stray: bool = False


@dataclass
class Cashier:
    """Makes payments. `quotes` are those that were made."""

    ground: Ground
    rng: random.Random
    quotes: Sequence[NewQuote]
    _shapes: tuple[Callable[[], Payment], ...] = field(init=False)

    def __post_init__(self) -> None:
        plain = (self._by_reference,) * 5 + (self._by_memo, self._both, self._griefing, self._relayed)
        odd = (self._conflict, self._two_named, self._unnamed, self._wrong_asset, self._dust, self._minted)
        rest = (self._in_and_out, self._mixed, self._table, self._unknown_reference, self._unlisted)
        more = (self._batch, self._shared, self._by_asset, self._spoofed, self._elsewhere, self._failed)
        self._shapes = (*plain, *odd, *rest, *more, self._outflow)

    def payment(self) -> Payment:
        """Of any shape."""
        return self.rng.choice(self._shapes)()

    def paying(self, quote: NewQuote) -> Payment:
        """The plainest there is."""
        steps = [self._transfer(self._payer(), quote.asset, quote.amount, quote.reference)]
        return self._made("plain", steps, self._payer(), Meant(quote.asset, quote.id))

    # What instructions are made of

    def _payer(self) -> Wallet:
        return self.ground.renters[0]

    def _quote(self, *assets: str) -> NewQuote:
        return self.rng.choice([one for one in self.quotes if not assets or one.asset in assets])

    def _amount(self, quote: NewQuote) -> int:
        """In full, a little of it, or too much."""
        some = self.rng.randint(2_000, max(2_000, quote.amount - 1))
        return self.rng.choice([quote.amount, some, some, quote.amount + self.rng.randint(1, 5_000)])

    def _transfer(self, payer: Wallet, asset: str, amount: int, *references: str) -> Instruction:
        keys = map(Pubkey.from_string, references)
        if asset == SOL:
            return make.labelled(make.pay_sol(payer.key, self.ground.treasury.key, amount), *keys)
        mint = self.ground.mint_of(asset)
        source, target = (self.ground.account_of(one, mint) for one in (payer, self.ground.treasury))
        program = self.ground.program(mint)
        if program == TOKEN and self.rng.random() < 0.4:
            return make.labelled(make.pay(source, target, payer.key, amount), *keys)
        return make.labelled(make.pay_checked(source, mint, target, payer.key, amount, 6, program), *keys)

    def _made(
        self, shape: str, steps: Sequence[Instruction], payer: Wallet, *meant: Meant, **options: Any
    ) -> Payment:
        stray = options.pop("stray", False)
        version = options.pop("version", None) or self.rng.choice(_VERSIONS)
        raw = payer.signed(*steps, version=version, **options)
        return Payment(shape=shape, raw=raw, meant=meant, stray=stray)

    # Shapes that are for one quote

    def _by_reference(self) -> Payment:
        quote, payer = self._quote(), self._payer()
        steps = [self._transfer(payer, quote.asset, self._amount(quote), quote.reference)]
        return self._made("reference", steps, payer, Meant(quote.asset, quote.id))

    def _by_memo(self) -> Payment:
        quote, payer = self._quote(), self._payer()
        steps = [make.memo(f"tempa:{quote.id}"), self._transfer(payer, quote.asset, self._amount(quote))]
        self.rng.shuffle(steps)
        return self._made("memo", steps, payer, Meant(quote.asset, quote.id))

    def _both(self) -> Payment:
        quote, payer = self._quote(), self._payer()
        transfer = self._transfer(payer, quote.asset, self._amount(quote), quote.reference)
        steps = [make.memo("for the machine"), make.memo(f"tempa:{quote.id}"), transfer]
        return self._made("both", steps, payer, Meant(quote.asset, quote.id))

    def _griefing(self) -> Payment:
        """A stranger hangs another's reference on a payment of his own: it is that quote's money then."""
        quote = self._quote()
        steps = [self._transfer(self.ground.stranger, quote.asset, 2_500, quote.reference)]
        return self._made("stranger", steps, self.ground.stranger, Meant(quote.asset, quote.id))

    def _relayed(self) -> Payment:
        quote, payer = self._quote(), self._payer()
        steps = [self._transfer(payer, quote.asset, self._amount(quote), quote.reference)]
        fee_payer = self.rng.choice([self.ground.relayer, self.ground.treasury]).pair
        return self._made("relayed", steps, payer, Meant(quote.asset, quote.id), fee_payer=fee_payer)

    def _table(self) -> Payment:
        """A lookup table alone names the treasury's account."""
        quote, payer = self._quote(str(self.ground.usd)), self._payer()
        steps = [self._transfer(payer, quote.asset, self._amount(quote), quote.reference)]
        meant = Meant(quote.asset, quote.id)
        return self._made("table", steps, payer, meant, version=0, tables=[self.ground.table])

    def _batch(self) -> Payment:
        """p-token's batch: no logs, no inner instructions."""
        quote, payer = self._quote(str(self.ground.usd)), self._payer()
        source, target = (self.ground.account_of(one, self.ground.usd) for one in self._ends(payer))
        parts = [
            make.pay(source, target, payer.key, self.rng.randint(2_000, 9_000)) for _ in range(self._few())
        ]
        steps = [make.memo(f"tempa:{quote.id}"), make.batch(parts)]
        return self._made("batch", steps, payer, Meant(quote.asset, quote.id))

    def _ends(self, payer: Wallet) -> tuple[Wallet, Wallet]:
        return payer, self.ground.treasury

    def _few(self) -> int:
        return self.rng.randint(2, 3)

    # Shapes that are for several

    def _shared(self) -> Payment:
        """Two quotes in one transaction, each transfer with its own reference."""
        usd = [quote for quote in self.quotes if quote.asset == str(self.ground.usd)]
        one, other = self.rng.sample(usd, 2)
        payer, amounts = self._payer(), [self._amount(one), self._amount(other)]
        pairs = list(zip((one, other), amounts, strict=True))
        steps = [self._transfer(payer, quote.asset, amount, quote.reference) for quote, amount in pairs]
        meant = [Meant(quote.asset, quote.id, amount) for quote, amount in pairs]
        return self._made("shared", steps, payer, *meant)

    def _by_asset(self) -> Payment:
        """Two quotes in two assets: each takes what comes in its own."""
        one, other = self._quote(str(self.ground.usd)), self._quote(SOL)
        payer = self._payer()
        steps = [
            self._transfer(payer, each.asset, self._amount(each), each.reference) for each in (one, other)
        ]
        return self._made("by-asset", steps, payer, *(Meant(each.asset, each.id) for each in (one, other)))

    # Shapes that are nobody's

    def _two_named(self) -> Payment:
        usd = [quote for quote in self.quotes if quote.asset == str(self.ground.usd)]
        one, other = self.rng.sample(usd, 2)
        steps = [self._transfer(self._payer(), one.asset, 3_000, one.reference, other.reference)]
        return self._made("two-named", steps, self._payer(), Meant(one.asset, _NOBODYS))

    def _conflict(self) -> Payment:
        usd = [quote for quote in self.quotes if quote.asset == str(self.ground.usd)]
        one, other = self.rng.sample(usd, 2)
        transfer = self._transfer(self._payer(), one.asset, self._amount(one), one.reference)
        steps = [make.memo(f"tempa:{other.id}"), transfer]
        return self._made("conflict", steps, self._payer(), Meant(one.asset, _NOBODYS))

    def _unnamed(self) -> Payment:
        asset, payer = self.rng.choice(self.ground.assets), self._payer()
        steps = [self._transfer(payer, asset, self.rng.randint(2_000, 60_000))]
        return self._made("unnamed", steps, payer, Meant(asset, _NOBODYS))

    def _unknown_reference(self) -> Payment:
        asset, payer = self.rng.choice(self.ground.assets), self._payer()
        reference = str(Pubkey.from_bytes(self.rng.randbytes(32)))
        steps = [self._transfer(payer, asset, 4_000, reference)]
        return self._made("unknown", steps, payer, Meant(asset, _NOBODYS))

    def _wrong_asset(self) -> Payment:
        quote, payer = self._quote(str(self.ground.usd), str(self.ground.fee)), self._payer()
        steps = [self._transfer(payer, SOL, self.rng.randint(2_000, 60_000), quote.reference)]
        return self._made("wrong-asset", steps, payer, Meant(SOL, _NOBODYS))

    def _dust(self) -> Payment:
        quote, payer = self._quote(str(self.ground.usd), SOL), self._payer()
        most = DUST["SOL" if quote.asset == SOL else "usd"] - 1
        steps = [self._transfer(payer, quote.asset, self.rng.randint(1, most), quote.reference)]
        return self._made("dust", steps, payer, Meant(quote.asset, _NOBODYS))

    def _minted(self) -> Payment:
        """Units out of nothing: no transfer at all."""
        ground = self.ground
        account = ground.account_of(ground.treasury, ground.usd)
        steps = [make.mint_to(ground.usd, account, ground.issuer.key, self.rng.randint(2_000, 9_000))]
        return self._made("minted", steps, ground.issuer, Meant(str(ground.usd), _NOBODYS))

    def _in_and_out(self) -> Payment:
        """Some of it, or all, goes back at once: the gain is what counts."""
        ground, payer = self.ground, self._payer()
        amount = self.rng.randint(5_000, 20_000)
        back = self.rng.choice([amount, amount - 1_000, amount + 1_000])
        source, target = (ground.account_of(one, ground.usd) for one in (ground.treasury, payer))
        steps = [self._transfer(payer, str(ground.usd), amount)]
        steps.append(make.pay(source, target, ground.treasury.key, back))
        meant = Meant(str(ground.usd), _NOBODYS)
        return self._made("in-and-out", steps, payer, meant, signers=[ground.treasury.pair])

    def _mixed(self) -> Payment:
        """A quote in full, and SOL beside it that names a quote in another asset."""
        quote, payer = self._quote(str(self.ground.usd)), self._payer()
        steps = [self._transfer(payer, quote.asset, self._amount(quote), quote.reference)]
        steps.append(self._transfer(payer, SOL, 5_000))
        return self._made("mixed", steps, payer, Meant(quote.asset, quote.id), Meant(SOL, _NOBODYS))

    # Shapes that bring nothing

    def _spoofed(self) -> Payment:
        """As many units of a mint that nobody listed."""
        quote, ground, payer = self._quote(), self.ground, self._payer()
        steps = [self._transfer(payer, str(ground.spoof), quote.amount, quote.reference)]
        return self._made("spoof", steps, payer, stray=True)

    def _unlisted(self) -> Payment:
        """The right token, to another account of the treasury's."""
        ground, payer = self.ground, self._payer()
        quote = self._quote(str(ground.usd))
        name = f"aux {self.rng.random()}"
        account = payer.open_other_account(name, ground.usd, ground.treasury.key)
        source = ground.account_of(payer, ground.usd)
        steps = [make.labelled(make.pay(source, account, payer.key, quote.amount))]
        return self._made("unlisted", steps, payer, stray=True)

    def _elsewhere(self) -> Payment:
        """Strangers pay one another, and mention the treasury's account and a quote's reference."""
        ground, payer, quote = self.ground, self._payer(), self._quote()
        source, target = (ground.account_of(one, ground.usd) for one in (payer, ground.stranger))
        named = ground.treasury_account(quote.asset), Pubkey.from_string(quote.reference)
        steps = [make.labelled(make.pay(source, target, payer.key, quote.amount), *named)]
        return self._made("elsewhere", steps, payer)

    def _failed(self) -> Payment:
        quote, payer = self._quote(str(self.ground.usd)), self._payer()
        steps = [
            self._transfer(payer, quote.asset, self._amount(quote), quote.reference),
            self._transfer(payer, quote.asset, _TOO_MUCH),
        ]
        fee_payer = self.rng.choice([payer, self.ground.treasury]).pair
        return self._made("failed", steps, payer, fee_payer=fee_payer)

    def _outflow(self) -> Payment:
        """The operator takes money out."""
        ground, payer = self.ground, self._payer()
        if self.rng.random() < 0.5:
            steps = [make.pay_sol(ground.treasury.key, payer.key, self.rng.randint(1, 10_000))]
        else:
            source, target = (ground.account_of(one, ground.usd) for one in (ground.treasury, payer))
            steps = [make.pay(source, target, ground.treasury.key, self.rng.randint(1, 500))]
        return self._made("outflow", steps, ground.treasury)


def revoke(ground: Ground) -> bytes:
    """Take back what `delegate` gave."""
    account = ground.account_of(ground.treasury, ground.usd)
    return ground.treasury.signed(make.revoke(account, ground.treasury.key))


def delegate(ground: Ground, amount: int) -> bytes:
    """Let a stranger move money of the treasury: then nothing is credited to that account."""
    account = ground.account_of(ground.treasury, ground.usd)
    return ground.treasury.signed(make.approve(account, ground.stranger.key, ground.treasury.key, amount))
