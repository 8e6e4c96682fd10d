"""Every way a payment waits, is refused or cannot be given to a quote: the closed table of reasons."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Kind(StrEnum):
    """What is done about it."""

    PENDING = "pending"  # nothing is wrong; the chain is asked again
    TRANSIENT = "transient"  # a node's trouble; asked again after a while
    TERMINAL = "terminal"  # final: asking again gives the same
    HOLD = "hold"  # money, or word of it, that a person has to look at
    ALARM = "alarm"  # the operator's settings or treasury are wrong; payments wait until they are right


@dataclass(frozen=True, slots=True)
class Reason:
    """One row of the table. `words` say what happened and what to do."""

    kind: Kind
    words: str


def _rows(kind: Kind, **words: str) -> dict[str, Reason]:
    return {code: Reason(kind, text) for code, text in words.items()}


REASONS: Mapping[str, Reason] = {
    **_rows(
        Kind.PENDING,
        not_found_yet="No node shows this transaction at finality yet. Wait; the sweep goes on looking.",
    ),
    **_rows(
        Kind.TRANSIENT,
        node_unreachable="The node could not be reached. Tempa asks again; see solana.rpc_urls if it lasts.",
        node_timeout="The node did not answer in time. Tempa asks again.",
        node_rate_limited="The node asks for fewer calls. Tempa waits as long as it says.",
        node_unavailable="The node answers that it cannot answer now. Tempa asks again.",
        node_behind="The node is behind the others. It is left out until it has caught up.",
        history_lost="The node does not show a transaction that it has shown before: it has dropped old ones,"
        " or hides some. The other nodes are read instead; add one that keeps its whole history.",
        answer_unreadable="The node's answer is no transaction that can be read. Tempa asks again.",
        answer_mismatch="The node answered with another transaction than asked for. Tempa asks again.",
        treasury_unknown="The treasury's accounts are not known yet, just after a start. Tempa asks again.",
        lookup_failed="Looking it up broke, by a fault of Tempa's own: its log says how. Tempa tries again.",
        meta_missing="The node has the transaction without its balances. Tempa asks another one.",
        nodes_too_few="Not enough nodes could confirm a payment of this size. Tempa asks again; add nodes to"
        " solana.rpc_urls if it lasts.",
    ),
    **_rows(
        Kind.TERMINAL,
        invalid_signature="This is no transaction's signature: it must be base58 of 64 bytes. Nothing to do.",
        transaction_failed="The transaction failed on the chain; nothing was paid. Pay again.",
        nothing_received="The transaction pays none of the treasury's accounts. Check the recipient.",
        treasury_outflow="Money left the treasury, and no refund of Tempa's took it. If it was you, resolve"
        " this; if not, somebody has the key: move the rest at once.",
    ),
    **_rows(
        Kind.HOLD,
        nodes_disagree="Nodes tell different things of this transaction: one of them is wrong. Compare their"
        " answers, take the wrong one out of solana.rpc_urls, then re-drive.",
        mint_not_allowed="A token came that is not accepted here. Send it back, or add its mint to"
        " solana.mints and re-drive.",
        wrapped_sol="Wrapped SOL came, which is not accepted here. Send it back, or list its mint.",
        account_not_listed="An accepted asset came to an unlisted account of the treasury's wallet."
        " List the account and re-drive, or move the money and resolve.",
        wrong_owner="The listed account is not the treasury's any more. Find out who changed its owner.",
        wrong_program="The listed account belongs to another token program than pinned. Check solana.mints.",
        wrong_mint="The listed account holds another mint than pinned. Check solana.mints.",
        wrong_decimals="The mint's decimals are not the pinned ones. Check solana.mints, and the node.",
        no_reference="The payment names no quote known here. Ask the payer, then allocate or refund it.",
        asset_mismatch="The payment names a quote in another asset. Allocate it by hand or refund it.",
        memo_mismatch="Reference and memo name different quotes. Ask the payer, then allocate it by hand.",
        dust="The payment is below the floor for its asset, so it waits. Allocate it by hand, or leave it.",
        instance_rented="The instance went to somebody else before this payment landed. Give it to another"
        " quote of the payer, or refund it.",
        instance_suspended="The instance is suspended. Resume it and re-drive, or refund the payment.",
        price_withdrawn="It came after the price lock, and the instance has no price in this asset any more."
        " Set one and re-drive, or refund it.",
        rental_too_long="The payment buys more time than a rental may have. Refund it.",
        entry_unreadable="An entry of a call holds no transaction's signature. Look at what came; if it was a"
        " payment, the sweep finds it.",
        call_unreadable="A call to the ingress could not be read. Look at what came, and at what the provider"
        " is set up to send; if it told of a payment, the sweep finds it.",
        call_too_large="A call to the ingress is larger than limits.json_body_bytes. Have the provider send"
        " less at a time, or raise the limit; if it told of a payment, the sweep finds it.",
        call_forged="Calls to the ingress fail the check of their secret. Compare payments.<source>.secret"
        " with the provider's; if it is right, somebody tries. Nothing was taken from them.",
        call_replayed="A call to the ingress came again with a nonce that was used before. The provider sends"
        " twice, or somebody has copied a call; what it tells of is looked up.",
        several_quotes="The payment names several quotes, and its transfers do not tell what is for which."
        " Allocate it by hand.",
    ),
    **_rows(
        Kind.ALARM,
        balance_mismatch="The chain shows another balance of the treasury's account than the ledger: money is"
        " missing in one of them. Look at what waits in the anomalies, and at the account's history on the"
        " chain; it clears by itself once both agree.",
        journal_broken="The journal's entries do not hang together, or do not sum to zero: somebody has"
        " changed the database. Stop, keep a copy, compare with a backup.",
        wrong_cluster="The node serves another chain than the treasury's. Correct solana.rpc_urls; nothing"
        " of it is credited.",
        version_unsupported="The node wants a newer transaction version allowed. Raise"
        " maxSupportedTransactionVersion; payments wait until then.",
        call_refused="The node refuses the call itself. Check the URL, the key in it and the node's version.",
        account_missing="The treasury's account does not exist on the chain. Open it, or unlist it.",
        account_frozen="The treasury's account is frozen by the mint's authority. Ask the issuer.",
        account_delegated="Someone else may move the money of the treasury's account. Revoke the delegate.",
        account_changed="The treasury's account has another owner, mint or program than pinned. Check it.",
        refund_mismatch="A refund landed, and did not take its amount from the treasury. Look at the"
        " transaction, and at what signs refunds; nothing more is signed for it.",
        refund_sent_before="The chain's history has a transaction of this refund that the ledger does not"
        " know, as after a backup was restored. It is not signed again: compare, then give it up.",
        refund_no_wallet="A refund would go to what is no wallet: a token account, a mint, a program. Give it"
        " up, and ask for it again with the wallet's own address.",
        close_authority="Someone else may close the treasury's account. Take the close authority back.",
        mint_unreadable="The mint could not be read, so nothing is credited in it. Check solana.mints.",
        transfer_fee="The mint may keep a fee of each transfer. Allow transferFeeConfig for it.",
        transfer_hook="The mint runs a program of its own on each transfer. Refused unless transferHook is"
        " allowed for it.",
        non_transferable="The mint's tokens cannot be transferred, so not refunded either. Refused.",
        default_frozen="New accounts of this mint are frozen. Refused unless defaultAccountState is allowed.",
        confidential_transfer="The mint can hide amounts. Refused unless its extension is allowed.",
        pausable="The mint's authority can stop all transfers. Refused unless pausableConfig is allowed.",
        permanent_delegate="The mint's authority can take tokens from anyone. Refused unless"
        " permanentDelegate is allowed.",
        extension_not_allowed="The mint has an extension that is not on its list. Look at it, then allow it"
        " or take the mint off the list.",
    ),
}


def is_again(code: str) -> bool:
    """Whether asking again by itself may help."""
    return REASONS[code].kind in {Kind.PENDING, Kind.TRANSIENT}
