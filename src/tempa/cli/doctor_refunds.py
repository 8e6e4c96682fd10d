"""What `tempa doctor` says of refunds, and of the key that signs what this deployment says of its ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.wiring.settings import Settings

Looked = tuple[Literal["ok", "warning", "fault"], str]


def look_at_refunds(settings: Settings) -> Looked:
    """Whether money can be sent back from here, and what is missing. Nothing is signed."""
    payments = settings.payments
    if not payments.refunds:
        idle = " (payments.refund_keypair is set, and not read)" if payments.refund_keypair else ""
        return "ok", f"off (payments.refunds){idle}: money in suspense is sent back by hand"
    if not settings.solana.is_configured:
        return "warning", "payments.refunds is on, but solana.treasury or solana.rpc_urls is not set"
    if not payments.refund_keypair:
        missing = "set payments.refund_keypair where the settler runs"
        return "warning", f"they can be asked for, and nothing signs them here: {missing}"
    return _signing(settings)


def _signing(settings: Settings) -> Looked:
    from tempa.wiring.chain import open_signer
    from tempa.wiring.settings import SettingsError

    try:
        open_signer(settings, ())
    except SettingsError as fault:
        return "fault", str(fault)
    return "ok", f"signed with the key of {settings.solana.treasury}"


def look_at_attestor(folder: Path) -> Looked:
    """The public key that checks proofs of this deployment. Makes no credentials where there are none yet."""
    from tempa.settlement.attestation import ALGORITHM, Attestor
    from tempa.wiring.credentials import FILE_NAME, load_credentials

    if not (folder / FILE_NAME).exists():
        return "ok", "no key yet: the first start makes it"
    attestor = Attestor(load_credentials(folder).derive("attestations"))
    return "ok", f"signed with {ALGORITHM} {attestor.public_key}"
