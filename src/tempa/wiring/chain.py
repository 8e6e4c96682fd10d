"""What payments are checked with: clients of the chain's nodes, the watch over the treasury, the guard."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tempa.adapters.chains.solana import SolanaRpc
from tempa.adapters.chains.solana.bucket import TokenBucket
from tempa.adapters.payments.guard import RedisGuard
from tempa.adapters.senders.curl import CurlSender
from tempa.core.accounts import DEFAULT_ACCOUNT
from tempa.settlement.model import SOL, Treasury
from tempa.settlement.post import Terms
from tempa.settlement.quorum import Quorum, Rule
from tempa.settlement.transfers import TOKEN, TOKEN_2022
from tempa.settlement.watch import ListedMint, TreasuryWatch
from tempa.wiring.settings import SettingsError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from tempa.core.clock import Clock
    from tempa.settlement.ports import Chain, Guard, Outlet, PushSource, Signer
    from tempa.settlement.watch import Noticeboard
    from tempa.wiring.chain_settings import Mint, Solana
    from tempa.wiring.settings import Settings

# Nodes are the operator's to name, those of the house too.
_ANYWHERE = (ip_network("0.0.0.0/0"), ip_network("::/0"))
_CONNECT_SECONDS = 5.0
_BURST = 50  # calls to a node at once
_PROGRAMS = {"spl-token": TOKEN, "token-2022": TOKEN_2022}


@dataclass(frozen=True, slots=True, kw_only=True)
class Payments:
    """What payments are checked with. Only where the settings name a treasury and a node."""

    nodes: tuple[Chain, ...]
    glances: tuple[Chain, ...]  # the same nodes, with what is only confirmed yet: to be shown, never credited
    quorum: Quorum
    watch: TreasuryWatch
    sources: tuple[PushSource, ...]  # who tell of payments by themselves
    outlets: tuple[Outlet, ...]  # the nodes again, which take refunds


def terms_of(settings: Settings) -> Terms:
    """The operator's terms. Payments that are nobody's are told to the default account."""
    solana = settings.solana
    return Terms(operator=DEFAULT_ACCOUNT, dust=_dust(solana))


@contextlib.asynccontextmanager
async def open_guard(url: str, namespace: str, clock: Clock) -> AsyncGenerator[Guard | None, None]:
    """What tells repeated calls early; None where there is none. It connects when it is first asked."""
    if not url:
        yield None
        return
    try:
        guard = RedisGuard(url, namespace=namespace, clock=clock)
    except ImportError:
        raise SettingsError("payments.guard_url needs a package: pip install 'tempa[scale]'") from None
    try:
        yield guard
    finally:
        await guard.close()


@contextlib.asynccontextmanager
async def open_payments(settings: Settings, store: Noticeboard) -> AsyncGenerator[Payments | None, None]:
    """Clients to every node; None where payments are not configured."""
    solana = settings.solana
    if not solana.is_configured:
        yield None
        return
    # A transport of its own: its calls may take as long as a node needs, and go to inner addresses.
    sender = CurlSender(
        _ANYWHERE, connect_timeout_seconds=_CONNECT_SECONDS, body_seconds=solana.timeout_seconds
    )
    clients = tuple(_clients(solana, sender))
    nodes = tuple(client for client, _ in clients)
    dust = _dust(solana)
    quorum = Quorum(
        nodes,
        Treasury(cluster="", accounts=(), dust=dust),
        Rule(nodes=solana.quorum_nodes, above=solana.quorum_above),
    )
    watch = TreasuryWatch(
        quorum=quorum,
        store=store,
        wallet=solana.treasury,
        mints=[_listed(mint) for mint in solana.mints],
        cluster=solana.cluster,
        dust=dust,
    )
    try:
        yield Payments(
            nodes=nodes,
            outlets=nodes,
            glances=tuple(glance for _, glance in clients),
            quorum=quorum,
            watch=watch,
            sources=tuple(_sources(solana)),
        )
    finally:
        await sender.close()


def open_signer(settings: Settings, outlets: Sequence[Outlet]) -> Signer | None:
    """What signs refunds, with the key that the settings name; None where they name none.

    Raises `SettingsError`: with a key of another wallet, or one that others can read, nothing starts.
    """
    path = settings.payments.refund_keypair
    if not path:
        return None
    try:
        from tempa.adapters.payments.keypair import KeypairSigner, KeyUnusable, read_keypair
    except ImportError:
        raise SettingsError("payments.refund_keypair needs solders: pip install 'tempa[solana]'") from None
    try:
        return KeypairSigner(read_keypair(Path(path), settings.solana.treasury), outlets)
    except KeyUnusable as fault:
        raise SettingsError(f"payments.refund_keypair: {path}: {fault}") from None


def _clients(solana: Solana, sender: CurlSender) -> Iterator[tuple[SolanaRpc, SolanaRpc]]:
    """Of each node, by preference: one at finality, and one that shows what is only confirmed.

    A name tells host and port, not the key; two keys at one provider are numbered.
    """
    hosts = [urlsplit(url).netloc.rpartition("@")[2] for url in solana.rpc_urls]
    total, seen = Counter(hosts), Counter[str]()
    for url, host in zip(solana.rpc_urls, hosts, strict=True):
        seen[host] += 1
        client = partial(
            SolanaRpc,
            url,
            sender,
            name=host if total[host] == 1 else f"{host} ({seen[host]})",
            bucket=TokenBucket(solana.requests_per_second, _BURST),  # both count to the node's one plan
            timeout_seconds=solana.timeout_seconds,
            patience_seconds=solana.timeout_seconds,
        )
        yield client(commitment=solana.commitment), client(commitment="confirmed")


def _sources(solana: Solana) -> Iterator[PushSource]:
    try:
        if solana.ws_url:
            from tempa.adapters.payments.websocket import WebSocketSource

            yield WebSocketSource(solana.ws_url, commitment=solana.commitment)
        if solana.geyser_url:
            from tempa.adapters.payments.geyser.source import GeyserSource

            yield GeyserSource(solana.geyser_url, commitment=solana.commitment)
    except ImportError as missing:
        need = f"solana.ws_url and solana.geyser_url need {missing.name}"
        raise SettingsError(f"{need}: pip install 'tempa[solana]'") from None
    except ValueError as fault:
        raise SettingsError(f"solana.geyser_url: {fault}") from None


def _listed(mint: Mint) -> ListedMint:
    return ListedMint(
        mint=mint.mint,
        decimals=mint.decimals,
        program=None if mint.program is None else _PROGRAMS[mint.program],
        account=mint.account,
        extensions=frozenset(mint.extensions),
    )


def _dust(solana: Solana) -> dict[str, int]:
    floors = {SOL: solana.dust_lamports} | {mint.mint: mint.dust for mint in solana.mints}
    return {asset: floor for asset, floor in floors.items() if floor}
