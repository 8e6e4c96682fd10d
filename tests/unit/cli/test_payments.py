"""`tempa payments`: renting, paying and looking after payments from the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tempa.cli import payments_audit, payments_quotes
from tempa.cli.units import in_user_units
from tempa.settlement.statement import Report
from tempa.settlement.views import LEDGER_COLUMNS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import FakeServer, Terminal

MINT = "9n4LE7XYy74L2MWLoUnFxKZ2TQs3ckGDyq81h3FQEpQZ"
WALLET = "H1qYLMXxXkx9Ei3R97A25zLdyP2AX9y1cxcdWLwtZn2a"
SIGNATURE = "5" * 87
INSTANCE: dict[str, Any] = {
    "id": "gpu_1",
    "name": "H200",
    "status": "AVAILABLE",
    "current_expiry": None,
    "renter": None,
    "prices": [{"asset": MINT, "amount": "1800000", "seconds": 3600}],
    "created_at": "2026-12-01T00:00:00Z",
    "suspended_at": None,
}
QUOTE: dict[str, Any] = {
    "quote_id": "quo_1",
    "gpu_instance_id": "gpu_1",
    "asset": MINT,
    "decimals": 6,
    "seconds": 3600,
    "amount": "1800000",
    "price": {"numerator": 1, "denominator": 500},
    "treasury": WALLET,
    "reference": "4f81VvrMb4F9yaaMfQm48pLEY9HcHgX86Ls2dbyNKMtf",
    "solana_pay_url": f"solana:{WALLET}?amount=1.8&spl-token={MINT}",
    "status": "open",
    "created_at": "2026-12-01T00:00:00Z",
    "expires_at": "2026-12-01T00:15:00Z",
    "seen": None,
    "final": None,
    "credited": None,
    "signature": None,
    "paid": "0",
    "granted_seconds": 0,
    "reason": None,
    "message": "No payment was heard of yet.",
}
CREDITED = {
    **QUOTE,
    "status": "credited",
    "credited": {"at": "2026-12-01T00:00:05Z", "slot": 77},
    "signature": SIGNATURE,
    "paid": "1800000",
    "granted_seconds": 3600,
    "message": "It was paid, and became time.",
}
SUSPENSE = {**QUOTE, "status": "suspense", "reason": "dust", "message": "It waits for the operator."}
ANOMALY: dict[str, Any] = {
    "id": "ano_1",
    "reason": "no_reference",
    "message": "The payment names no quote known here.",
    "error_trace": "none of 2 keys",
    "signature": SIGNATURE,
    "source": "helius",
    "raw_payload": "[]",
    "raw_encoding": "utf-8",
    "raw_size_bytes": 2,
    "asset": "SOL",
    "account": WALLET,
    "amount": "5",
    "quote_id": None,
    "count": 2,
    "created_at": "2026-12-01T00:00:00Z",
    "seen_at": "2026-12-01T00:00:09Z",
    "resolved_at": None,
    "resolution": None,
}
PAYMENT: dict[str, Any] = {
    "signature": SIGNATURE,
    "status": "credited",
    "reason": None,
    "message": None,
    "what_next": "Nothing: it became time.",
    "heard": [],
    "receipts": [
        {
            "asset": MINT,
            "amount": "1800000",
            "account": WALLET,
            "slot": 77,
            "block_time": None,
            "payer": None,
            "posted_at": "2026-12-01T00:00:05Z",
            "waiting": "0",
            "allocations": [
                {
                    "quote_id": "quo_1",
                    "gpu_instance_id": "gpu_1",
                    "amount": "1800000",
                    "seconds": 3600,
                    "current_expiry": "2026-12-01T01:00:05Z",
                    "allocated_at": "2026-12-01T00:00:05Z",
                }
            ],
        }
    ],
    "anomalies": [],
}
TREASURY: dict[str, Any] = {
    "wallet": WALLET,
    "cluster": MINT,
    "is_known": True,
    "message": "Payments are looked up and credited.",
    "accounts": [
        {"asset": "SOL", "address": WALLET, "decimals": 9, "program": None, "refusal": None, "message": None},
        {
            "asset": MINT,
            "address": MINT,
            "decimals": 6,
            "program": None,
            "refusal": "account_frozen",
            "message": "The treasury's account is frozen.",
        },
    ],
    "nodes": [
        {"name": "a.test", "rpc_url": None, "slot": 77, "excluded": None, "message": None},
        {
            "name": "b.test",
            "rpc_url": None,
            "slot": None,
            "excluded": "node_behind",
            "message": "It is behind.",
        },
    ],
}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payments_quotes, "_LOOK_SECONDS", 0.0)


@pytest.mark.parametrize(
    ("amount", "decimals", "shown"),
    [
        ("1800000", 6, "1.8"),
        ("1", 9, "0.000000001"),
        ("18446744073709551615", 9, "18446744073.709551615"),
        ("7", 0, "7"),
        ("70", 0, "70"),
        ("1000000", 6, "1"),
        ("0", 6, "0"),
    ],
)
def test_amounts_are_written_out_exactly(amount: str, decimals: int, shown: str) -> None:
    assert in_user_units(amount, decimals) == shown


def test_an_instance_is_offered_at_prices_in_base_units(server: FakeServer, tempa: Terminal) -> None:
    server.on_json("POST /v1/gpu-instances", INSTANCE, status=201)
    result = tempa.run(
        "payments",
        "instances",
        "add",
        "H200",
        "--price",
        f"{MINT}=1800000/3600",
        "--price",
        "SOL=9007199254740991/1",
    )

    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["id"] == "gpu_1"
    assert server.body() == {
        "name": "H200",
        "prices": [
            {"asset": MINT, "amount": "1800000", "seconds": 3600},
            {"asset": "SOL", "amount": "9007199254740991", "seconds": 1},
        ],
    }


@pytest.mark.parametrize("price", ["SOL", "SOL=1", "SOL=1/", "=1/1", "SOL=1/an hour", "SOL=/1"])
def test_a_price_of_another_form_is_never_sent(server: FakeServer, tempa: Terminal, price: str) -> None:
    result = tempa.run("payments", "instances", "add", "H200", "--price", price)

    assert result.exit_code == 2
    assert "ASSET=AMOUNT/SECONDS" in result.stderr
    assert server.requests == []


def test_instances_are_shown_suspended_and_resumed(server: FakeServer, tempa: Terminal) -> None:
    suspended = {**INSTANCE, "status": "SUSPENDED", "suspended_at": "2026-12-01T00:00:00Z"}
    server.on_json("GET /v1/gpu-instances", {"items": [INSTANCE], "next_cursor": None})
    server.on_json("POST /v1/gpu-instances/gpu_1/suspend", suspended)
    server.on_json("POST /v1/gpu-instances/gpu_1/resume", INSTANCE)
    server.on_json("PATCH /v1/gpu-instances/gpu_1", INSTANCE)

    listed = tempa.show("payments", "instances", "ls")
    assert f"{MINT}=1800000/3600" in listed.stdout
    assert "SUSPENDED" in tempa.show("payments", "instances", "suspend", "gpu_1").stdout
    assert "AVAILABLE" in tempa.show("payments", "instances", "resume", "gpu_1").stdout
    assert tempa.show("payments", "instances", "prices", "gpu_1", "--price", "SOL=5/1").exit_code == 0
    assert server.body() == {"prices": [{"asset": "SOL", "amount": "5", "seconds": 1}]}


def test_a_quote_shows_the_amount_in_user_units_the_url_and_its_code(
    server: FakeServer, tempa: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    server.on_json("GET /v1/gpu-instances/gpu_1", INSTANCE)
    server.on_json("POST /v1/rentals/quotes", QUOTE, status=201)
    result = tempa.show("payments", "quote", "gpu_1", "--seconds", "3600")

    assert result.exit_code == 0, result.output
    assert f"1.8 {MINT} for 3600 s" in result.stdout
    assert scanned(result.stdout) == QUOTE["solana_pay_url"]
    assert server.body() == {"gpu_instance_id": "gpu_1", "asset": MINT, "seconds": 3600}


def test_a_code_that_would_not_fit_is_not_drawn(
    server: FakeServer, tempa: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    server.on_json("POST /v1/rentals/quotes", QUOTE, status=201)
    result = tempa.show("payments", "quote", "gpu_1", "--seconds", "3600", "--asset", "SOL")

    assert "█" not in result.stdout
    assert "needs a terminal of" in result.stderr
    assert server.body()["asset"] == "SOL"


def test_waiting_for_a_quote_ends_when_it_is_credited(server: FakeServer, tempa: Terminal) -> None:
    server.on_json("POST /v1/rentals/quotes", QUOTE, status=201)
    server.on_json("GET /v1/rentals/quotes/quo_1", {**QUOTE, "status": "seen", "message": "Seen."}, CREDITED)
    result = tempa.run("payments", "quote", "gpu_1", "--asset", MINT, "--seconds", "3600", "--wait")

    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["granted_seconds"] == 3600
    assert QUOTE["solana_pay_url"] in result.stderr
    assert "seen: Seen." in result.stderr


@pytest.mark.parametrize(
    ("ending", "code"), [(CREDITED, 0), (SUSPENSE, 1), ({**QUOTE, "status": "expired"}, 1)]
)
def test_the_exit_code_says_whether_the_quote_was_paid(
    server: FakeServer, tempa: Terminal, ending: dict[str, Any], code: int
) -> None:
    server.on_json("GET /v1/rentals/quotes/quo_1", QUOTE, ending)
    result = tempa.run("payments", "quotes", "show", "quo_1", "--wait")

    assert result.exit_code == code
    assert json.loads(result.stdout)["status"] == ending["status"]


def test_an_interrupted_wait_says_how_to_come_back(server: FakeServer, tempa: Terminal) -> None:
    server.on("GET /v1/rentals/quotes/quo_1", httpx2.Response(200, json=QUOTE), KeyboardInterrupt())
    result = tempa.run("payments", "quotes", "show", "quo_1", "--wait")

    assert result.exit_code == 130
    assert "tempa payments quotes show quo_1 --wait" in result.stderr


def test_a_quote_tells_what_came_and_what_it_bought(server: FakeServer, tempa: Terminal) -> None:
    server.on_json("GET /v1/rentals/quotes/quo_1", CREDITED)
    server.on_json("GET /v1/rentals/quotes", {"items": [CREDITED], "next_cursor": None})
    shown = tempa.show("payments", "quotes", "show", "quo_1").stdout

    assert "credited: It was paid, and became time." in shown
    assert f"1.8 came and bought 3600 s, by {SIGNATURE}" in shown
    assert "slot 77" in shown
    assert "credited  3600" in tempa.show("payments", "quotes", "ls").stdout


def test_a_payment_says_what_it_bought(server: FakeServer, tempa: Terminal) -> None:
    server.on_json(f"GET /v1/payments/{SIGNATURE}", PAYMENT)
    shown = tempa.show("payments", "show", SIGNATURE).stdout

    assert f"{SIGNATURE}  credited" in shown
    assert "1800000 bought 3600 s for quo_1" in shown
    assert json.loads(tempa.run("payments", "show", SIGNATURE, "--json").stdout)["what_next"]


def test_the_ledger_comes_as_text_json_or_csv(server: FakeServer, tempa: Terminal) -> None:
    raw = b"id,tx_signature\r\n1,abc\r\n"
    server.on("GET /v1/ledger", httpx2.Response(200, content=raw))
    written = tempa.run("payments", "ledger", "--format", "csv", "--account", "*")

    assert written.stdout_bytes == raw
    assert dict(server.requests[-1].url.params) == {"format": "csv", "account": "*"}
    server.on_json("GET /v1/ledger", {"items": [], "next_cursor": None})
    assert json.loads(tempa.run("payments", "ledger").stdout) == {"items": []}
    assert "Nothing was credited yet." in tempa.show("payments", "ledger").stdout
    assert json.loads(tempa.show("payments", "ledger", "--format", "json").stdout) == {"items": []}


def test_anomalies_are_listed_with_what_to_do_and_ended(server: FakeServer, tempa: Terminal) -> None:
    resolved = {**ANOMALY, "resolved_at": "2026-12-01T00:01:00Z", "resolution": "sent back"}
    server.on_json("GET /v1/payments/anomalies", {"items": [ANOMALY], "next_cursor": None})
    server.on_json("GET /v1/payments/anomalies/ano_1", ANOMALY)
    server.on_json(
        "POST /v1/payments/anomalies/ano_1/redrive",
        {"id": "ano_1", "outcome": "waiting", "message": "As before."},
    )
    server.on_json("POST /v1/payments/anomalies/ano_1/resolve", resolved)

    assert "no_reference: The payment names no quote" in tempa.show("payments", "anomalies", "ls").stdout
    assert "5 base units of SOL" in tempa.show("payments", "anomalies", "show", "ano_1").stdout
    assert "waiting: As before." in tempa.show("payments", "anomalies", "redrive", "ano_1").stdout
    done = tempa.show(
        "payments", "anomalies", "resolve", "ano_1", "--reason", "sent back", "--quote", "quo_1"
    )
    assert "resolved" in done.stdout
    assert server.body() == {"resolution": "sent back", "quote_id": "quo_1"}


def test_an_anomaly_is_not_resolved_without_a_reason(server: FakeServer, tempa: Terminal) -> None:
    assert tempa.run("payments", "anomalies", "resolve", "ano_1").exit_code == 2
    assert server.requests == []


def test_the_treasury_says_what_is_not_credited_and_who_is_not_asked(
    server: FakeServer, tempa: Terminal
) -> None:
    server.on_json("GET /v1/payments/treasury", TREASURY)
    shown = tempa.show("payments", "treasury").stdout

    assert "Payments are looked up and credited." in shown
    assert "The treasury's account is frozen." in shown
    assert "It is behind." in shown
    assert json.loads(tempa.run("payments", "treasury", "--json").stdout) == TREASURY


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"id,amount\n", b"\x00\x01\x02", b"\xff\xfe", b"no statement"]
)
def test_what_has_not_the_columns_of_a_ledger_is_no_statement(
    server: FakeServer, tempa: Terminal, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "statement.csv"
    file.write_bytes(content)

    refused = tempa.run("payments", "verify-statement", str(file))

    assert refused.exit_code == 2
    assert "is no statement" in refused.stderr or "cannot be read" in refused.stderr


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_ledger_without_credits_has_nothing_to_verify(tmp_path: Path, mark: str) -> None:
    file = tmp_path / "statement.csv"
    file.write_text(mark + ",".join(LEDGER_COLUMNS) + "\r\n", encoding="utf-8")
    report = Report(
        lines=0, transactions=0, sums={}, seconds={}, differences=(), difference_count=0, unchecked={}
    )

    assert payments_audit._rows(file) == []
    assert payments_audit._report_lines(report) == ["No credits: nothing to verify."]
    assert payments_audit._report_document(report)["note"] == "No credits: nothing to verify."


def test_a_key_without_the_scope_is_told_so(server: FakeServer, tempa: Terminal) -> None:
    server.refuse("GET /v1/payments/treasury", 403, "missing-scope", "This key may not do this.")
    assert tempa.run("payments", "treasury").exit_code == 6


def scanned(shown: str) -> str:
    """What a reader of QR codes that is not ours makes of half blocks, light ones set."""
    import numpy as np
    import zxingcpp

    halves = {" ": (0, 0), "▀": (255, 0), "▄": (0, 255), "█": (255, 255)}
    lines = [line for line in shown.splitlines() if line and set(line) <= halves.keys()]
    width = max(map(len, lines))
    rows: list[list[int]] = []
    for line in lines:
        pairs = [halves[each] for each in line.ljust(width)]
        rows += [[pair[0] for pair in pairs], [pair[1] for pair in pairs]]
    picture = np.array(rows, dtype=np.uint8).repeat(4, 0).repeat(4, 1)
    (found,) = zxingcpp.read_barcodes(picture)
    return str(found.text)
