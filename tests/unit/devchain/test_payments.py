"""A Solana Pay URL is paid as its specification has it: memo before, transfer last, references on it."""

from __future__ import annotations

import pytest
from solders.pubkey import Pubkey

from tempa.testing.devchain.blocks import Mode
from tempa.testing.devchain.cluster import Cluster
from tempa.testing.devchain.devnet import Devnet
from tempa.testing.devchain.payments import Payment, payment_of
from tempa.testing.devchain.programs import MEMO
from tempa.testing.devchain.tokens import token_account
from tempa.testing.devchain.wallet import keypair

WALLET = str(keypair("somebody").pubkey())
MINT = str(keypair("a mint").pubkey())
REFERENCES = [str(keypair("reference", str(number)).pubkey()) for number in range(2)]


def test_a_transfer_request_is_read() -> None:
    url = f"solana:{WALLET}?amount=1.05&spl-token={MINT}&reference={REFERENCES[0]}&reference={REFERENCES[1]}"
    payment = payment_of(f"{url}&label=Tempa&memo=tempa%3Aquo_1", 6)

    assert payment == Payment(
        to=Pubkey.from_string(WALLET),
        asset=MINT,
        amount=1_050_000,
        references=tuple(map(Pubkey.from_string, REFERENCES)),
        memo="tempa:quo_1",
        decimals=6,
    )


@pytest.mark.parametrize(
    ("amount", "decimals", "base_units"),
    [("0.000000001", 9, 1), ("18446744073.709551615", 9, 2**64 - 1), ("7", 0, 7), ("0.10", 1, 1)],
)
def test_amounts_are_exact(amount: str, decimals: int, base_units: int) -> None:
    assert payment_of(f"solana:{WALLET}?amount={amount}", decimals).amount == base_units


@pytest.mark.parametrize(
    "url",
    [
        f"solana:{WALLET}",
        f"bitcoin:{WALLET}?amount=1",
        f"solana:{WALLET}?amount=0.0000001",
        "solana:x?amount=1",
    ],
)
def test_what_cannot_be_paid_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        payment_of(url, 6)


def test_the_memo_stands_before_the_transfer_and_references_on_it() -> None:
    net = Devnet(Cluster(mode=Mode.ALPENGLOW))
    told = {
        "to": str(net.treasury.key),
        "asset": str(net.mint),
        "amount": 5,
        "reference": REFERENCES,
        "memo": "m",
    }
    steps = Payment.of(told).instructions(net.payer.key)
    net.payer.send(*steps)
    state = token_account(net.cluster.bank.account(net.treasury.account(net.mint)))

    assert [step.program_id == MEMO for step in steps] == [True, False]
    labels = steps[-1].accounts[-2:]
    assert [str(meta.pubkey) for meta in labels] == REFERENCES
    assert not any(meta.is_signer or meta.is_writable for meta in labels)
    assert state is not None
    assert state.amount == 5
