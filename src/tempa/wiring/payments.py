"""What takes and settles payments, made of a process's parts."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tempa import __version__
from tempa.adapters.payments.generic import Generic
from tempa.adapters.payments.helius import Helius
from tempa.adapters.payments.quicknode import QuickNode
from tempa.settlement.calls import Calls
from tempa.settlement.follow import Follower
from tempa.settlement.listen import Listener
from tempa.settlement.lookup import Patience
from tempa.settlement.proof import Proofs
from tempa.settlement.quoting import Quoting
from tempa.settlement.reconcile import Reconciler
from tempa.settlement.refunding import Refunder
from tempa.settlement.settle import Settler
from tempa.settlement.standing import Standing, standing
from tempa.settlement.sweep import Sweeper
from tempa.settlement.tend import Tender
from tempa.wiring.allowance import RentalAllowance
from tempa.wiring.chain import open_signer, terms_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tempa.core.roles import Role
    from tempa.settlement.ports import PushSource
    from tempa.wiring.chain import Payments
    from tempa.wiring.parts import Parts

_LEASE_MARGIN_SECONDS = 30.0


def quoting(parts: Parts) -> Quoting:
    """Makes quotes, where payments are configured; says so, where they are not."""
    payments = parts.payments
    return Quoting(
        store=parts.settlement,
        treasury=None if payments is None else payments.watch.known,
        clock=parts.clock,
        lock_seconds=parts.settings.payments.quote_seconds,
    )


def proofs(parts: Parts) -> Proofs:
    """Makes proofs of credit, signed by the deployment."""
    payments = parts.payments
    return Proofs(
        store=parts.settlement,
        treasury=None if payments is None else lambda: payments.watch.treasury,
        terms=terms_of(parts.settings),
        clock=parts.clock,
        version=__version__,
        attestor=parts.attestor,
    )


def calls(parts: Parts) -> Calls:
    """Takes in what providers post: also while payments are not configured, as nothing told may be lost."""
    sources = {source.name: source for source in (Helius(), QuickNode(), Generic())}
    return Calls(
        store=parts.settlement,
        clock=parts.clock,
        meter=parts.meter,
        sources=sources,
        secrets={name: parts.settings.payments.secrets_of(name) for name in sources},
        guard=parts.guard,
    )


def treasury_standing(parts: Parts) -> Standing | None:
    """How the treasury stands now; None where payments are not configured."""
    if parts.payments is None:
        return None
    return standing(parts.payments.watch, parts.settings.solana.rpc_urls)


def allowance(parts: Parts) -> RentalAllowance:
    """Who may use which GPU instance."""
    return RentalAllowance(store=parts.settlement, clock=parts.clock, quoting=quoting(parts))


def settling(parts: Parts) -> list[Role]:
    """What a settler does. Rentals come to their end also where nothing can be paid any more."""
    if parts.payments is None:
        return [tender(parts)]
    payments = parts.payments
    sweeper = Sweeper(
        store=parts.settlement,
        quorum=payments.quorum,
        watch=payments.watch,
        clock=parts.clock,
        meter=parts.meter,
        every_seconds=parts.settings.solana.sweep_seconds,
    )
    listeners = [listener(parts, payments, source, sweeper.sweep_soon) for source in payments.sources]
    return [
        tender(parts),
        settler(parts, payments),
        sweeper,
        follower(parts, payments),
        reconciler(parts, payments, sweeper),
        *listeners,
        *refunding(parts, payments),
    ]


def refunding(parts: Parts, payments: Payments) -> list[Role]:
    """Where refunds are on. Without a key those that were sent are still followed to their end."""
    if not parts.settings.payments.refunds:
        return []
    refunder = Refunder(
        store=parts.settlement,
        quorum=payments.quorum,
        terms=terms_of(parts.settings),
        signer=open_signer(parts.settings, payments.outlets),
        outlets=payments.outlets,
        # Of payments one node may be believed. What one node hides would be paid a second time.
        nodes_needed=max(2, parts.settings.solana.quorum_nodes),
    )
    return [refunder]


def tender(parts: Parts) -> Tender:
    """Warns of the end of rentals, and ends them."""
    payments = parts.settings.payments
    return Tender(
        store=parts.settlement,
        clock=parts.clock,
        meter=parts.meter,
        warn_seconds=payments.warn_seconds,
        grace_seconds=payments.grace_seconds,
    )


def follower(parts: Parts, payments: Payments) -> Follower:
    """Looks for the payments of open quotes."""
    return Follower(
        store=parts.settlement,
        quorum=payments.quorum,
        watch=payments.watch,
        clock=parts.clock,
        meter=parts.meter,
        glances=payments.glances,
    )


def reconciler(parts: Parts, payments: Payments, sweeper: Sweeper) -> Reconciler:
    """Compares the ledger with the chain."""
    return Reconciler(
        store=parts.settlement,
        quorum=payments.quorum,
        watch=payments.watch,
        swept=sweeper.swept,
        clock=parts.clock,
        meter=parts.meter,
        every_seconds=parts.settings.solana.reconcile_seconds,
    )


def listener(parts: Parts, payments: Payments, source: PushSource, on_gap: Callable[[], None]) -> Listener:
    """Hears what a source tells of payments."""
    return Listener(
        source=source,
        store=parts.settlement,
        watch=payments.watch,
        on_gap=on_gap,
        clock=parts.clock,
        meter=parts.meter,
        rng=random.SystemRandom(),
    )


def settler(parts: Parts, payments: Payments) -> Settler:
    """Looks up and posts what the inbox holds."""
    solana, settings = parts.settings.solana, parts.settings.payments
    call_seconds = 2 * solana.timeout_seconds  # its turn, and its answer
    return Settler(
        store=parts.settlement,
        quorum=payments.quorum,
        watch=payments.watch,
        terms=terms_of(parts.settings),
        wake=parts.wake,
        clock=parts.clock,
        meter=parts.meter,
        rng=random.SystemRandom(),
        patience=Patience(
            not_found_after_seconds=settings.not_found_after_seconds,
            transient_retries=settings.max_transient_retries,
        ),
        lookups_max=solana.lookups_max,
        lease_seconds=call_seconds * len(payments.nodes) + _LEASE_MARGIN_SECONDS,
    )
