"""`tempa payments refunds`, and what the doctor says of refunds."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import typer
from solders.keypair import Keypair

from tempa.cli import payments_refunds
from tempa.cli.doctor_refunds import look_at_attestor, look_at_refunds
from tempa.settlement.attestation import Attestor
from tempa.wiring.credentials import load_credentials
from tempa.wiring.settings import load_settings
from tests.unit.cli.test_payments import ANOMALY, PAYMENT, SIGNATURE, WALLET

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import FakeServer, Terminal

PAYER = "4f81VvrMb4F9yaaMfQm48pLEY9HcHgX86Ls2dbyNKMtf"
OTHER = "9n4LE7XYy74L2MWLoUnFxKZ2TQs3ckGDyq81h3FQEpQZ"
ASK = "POST /v1/payments/refunds"
REFUND: dict[str, Any] = {
    "id": "ref_1",
    "state": "broadcast",
    "message": "It is on its way.",
    "asset": "SOL",
    "amount": "5",
    "recipient": OTHER,
    "signature": SIGNATURE,
    "anomaly_id": "ano_1",
    "account": WALLET,
    "note": "Ana",
    "reason": None,
    "requested_at": "2026-12-01T00:00:00Z",
    "ended_at": None,
    "transactions": [
        {
            "signature": "4" * 87,
            "outcome": None,
            "last_valid_height": 300,
            "signed_at": "2026-12-01T00:00:01Z",
            "sent_at": "2026-12-01T00:00:02Z",
        }
    ],
}
RECEIPT = {**PAYMENT["receipts"][0], "asset": "SOL", "account": WALLET, "payer": PAYER}
COMMAND = ("payments", "refunds", "ask", "ano_1")


@pytest.fixture
def paid(server: FakeServer) -> FakeServer:
    """An anomaly of a payment, with where it came from."""
    server.on_json("GET /v1/payments/anomalies/ano_1", ANOMALY)
    server.on_json(f"GET /v1/payments/{SIGNATURE}", {**PAYMENT, "receipts": [RECEIPT]})
    server.on_json(ASK, REFUND, status=202)
    return server


def asked(server: FakeServer) -> list[Any]:
    return [json.loads(one.content) for one in server.requests if one.method == "POST"]


class Typing:
    """Somebody sits there."""

    def isatty(self) -> bool:
        return True


def test_they_are_listed_shown_and_given_up(server: FakeServer, tempa: Terminal) -> None:
    server.on_json("GET /v1/payments/refunds", {"items": [REFUND], "next_cursor": None})
    server.on_json("GET /v1/payments/refunds/ref_1", REFUND)
    server.on_json("POST /v1/payments/refunds/ref_1/give-up", {**REFUND, "state": "failed", "reason": "no"})

    assert OTHER in tempa.show("payments", "refunds", "ls").stdout
    shown = tempa.show("payments", "refunds", "show", "ref_1").stdout
    assert "5 base units of SOL" in shown
    assert f"{'4' * 87}  sent" in shown
    assert json.loads(tempa.show("payments", "refunds", "show", "ref_1", "--json").stdout)["id"] == "ref_1"
    given_up = tempa.show("payments", "refunds", "give-up", "ref_1", "--reason", "no")
    assert "failed" in given_up.stdout
    assert server.body() == {"reason": "no"}


def test_who_is_named_is_paid_without_a_question(paid: FakeServer, tempa: Terminal) -> None:
    done = tempa.run(*COMMAND, "--to", OTHER, "--note", "Ana")

    assert done.exit_code == 0
    assert asked(paid) == [{"anomaly_id": "ano_1", "recipient": OTHER, "note": "Ana"}]


def test_where_it_came_from_is_offered_and_has_to_be_confirmed(
    paid: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    answers = [False, True]
    monkeypatch.setattr(sys, "stdin", Typing())

    def confirm(question: str, **how: object) -> bool:
        assert how["default"] is False
        said.append(question)
        return answers.pop(0)

    monkeypatch.setattr(typer, "confirm", confirm)

    with pytest.raises(typer.Exit):
        payments_refunds.ask("ano_1", None, None, as_json=True)
    assert asked(paid) == []
    payments_refunds.ask("ano_1", None, None, as_json=True)

    assert asked(paid) == [{"anomaly_id": "ano_1", "recipient": PAYER}]
    assert f"Send 5 base units of SOL to {PAYER}" in said[0]
    assert "exchange" in said[0]


def test_in_a_script_nobody_is_paid_who_was_not_named(paid: FakeServer, tempa: Terminal) -> None:
    done = tempa.run(*COMMAND, stdin="y\n")

    assert done.exit_code == 2
    assert f"--to WALLET (it was paid from {PAYER})" in done.output
    assert asked(paid) == []


def test_where_nobody_knows_who_paid_the_wallet_is_asked_for(paid: FakeServer, tempa: Terminal) -> None:
    paid.on_json(f"GET /v1/payments/{SIGNATURE}", {**PAYMENT, "receipts": [{**RECEIPT, "payer": None}]})

    done = tempa.run(*COMMAND)

    assert (done.exit_code, "Nobody knows who paid" in done.output) == (2, True)
    assert asked(paid) == []


def test_an_answer_that_is_lost_is_not_asked_for_again(server: FakeServer, tempa: Terminal) -> None:
    server.on(ASK, httpx2.ReadError("it is gone"))

    assert tempa.run(*COMMAND, "--to", OTHER).exit_code != 0
    assert len(asked(server)) == 1


# The doctor

PAIR = Keypair()


def looked(**settings: str) -> tuple[str, str]:
    names = {"TEMPA_" + name.upper(): value for name, value in settings.items()}
    return look_at_refunds(load_settings(environment=names))


def test_the_doctor_says_what_is_missing(tmp_path: Path) -> None:
    key = tmp_path / "treasury.json"
    key.touch(0o600)
    key.write_text(PAIR.to_json())
    paid = {"solana__rpc_urls": '["http://node.test"]', "solana__treasury": str(PAIR.pubkey())}
    on = {**paid, "payments__refunds": "true"}

    assert looked() == ("ok", "off (payments.refunds): money in suspense is sent back by hand")
    assert "not read" in looked(payments__refund_keypair=str(key))[1]
    assert looked(payments__refunds="true")[0] == "warning"
    assert looked(**on)[0] == "warning"
    assert "set payments.refund_keypair" in looked(**on)[1]
    whole = {**on, "payments__refund_keypair": str(key)}
    assert looked(**whole) == ("ok", f"signed with the key of {PAIR.pubkey()}")
    key.chmod(0o644)
    assert looked(**whole)[0] == "fault"
    assert "chmod 600" in looked(**whole)[1]


def test_the_doctor_shows_the_key_that_checks_proofs_and_makes_none(tmp_path: Path) -> None:
    assert look_at_attestor(tmp_path)[1].startswith("no key yet")
    assert list(tmp_path.iterdir()) == []
    key = Attestor(load_credentials(tmp_path).derive("attestations")).public_key

    assert look_at_attestor(tmp_path) == ("ok", f"signed with Ed25519 {key}")
