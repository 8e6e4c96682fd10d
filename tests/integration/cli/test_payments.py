"""`tempa payments` from the offer to the audit, with a whole server and a real development chain."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from tempa.cli import payments_proofs
from tempa.cli.demo_chain import DemoChain, demo_chain
from tempa.cli.demo_rental import wait_until_known
from tempa.cli.main import app
from tempa.client import Client
from tempa.settlement.ports import Found, NotFound
from tempa.testing.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typer.testing import Result

SECOND = 1000  # base units
EXAMPLES = Path(__file__).parents[3] / "examples"
PATIENCE_SECONDS = 60.0


@dataclass
class Paid:
    """A server, its chain, and a quote that was paid in full."""

    chain: DemoChain
    server: Server
    folder: Path
    quote: dict[str, Any]
    signature: str

    def on_chain(self) -> list[str]:
        """Options of who believes the chain alone."""
        chain = self.chain
        return ["--rpc-url", chain.rpc_url, "--treasury", chain.treasury, "--mint", chain.mint]


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["payments", *arguments])
    assert result.exit_code == code, result.output
    return result


def told(*arguments: str, code: int = 0) -> Any:
    return json.loads(run(*arguments, code=code).stdout)


@pytest.fixture(scope="module")
def paid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Paid]:
    folder = tmp_path_factory.mktemp("payments")
    with demo_chain() as chain, pytest.MonkeyPatch.context() as patch:
        server = Server(folder / "data", chain.environment())
        with server:
            assert server.ready is not None
            patch.setenv("TEMPA_URL", server.url)
            patch.setenv("TEMPA_API_KEY", server.ready["api_key"])
            for name, value in chain.environment().items():
                patch.setenv(name, value)
            chain.tell(server.url, copies=2)
            with Client() as tempa:
                wait_until_known(tempa)
            yield _paid(chain, server, folder)


def _paid(chain: DemoChain, server: Server, folder: Path) -> Paid:
    gpu = told("instances", "add", "H200", "--price", f"{chain.mint}={SECOND}/1")
    quote = told("quote", gpu["id"], "--seconds", "60")
    payment = CliRunner().invoke(app, ["dev", "pay", quote["quote_id"]])
    assert payment.exit_code == 0, payment.output
    return Paid(chain, server, folder, quote, json.loads(payment.stdout)["signature"])


def test_the_treasury_is_told_with_the_chains_node(paid: Paid) -> None:
    treasury = told("treasury")
    assert treasury["is_known"]
    assert {row["asset"] for row in treasury["accounts"]} == {"SOL", paid.chain.mint}
    assert [node["rpc_url"] for node in treasury["nodes"]] == [paid.chain.rpc_url]


def test_a_paid_quote_is_waited_for_and_rents_the_instance(paid: Paid) -> None:
    quote = told("quotes", "show", paid.quote["quote_id"], "--wait")
    (gpu,) = told("instances", "ls")["items"]

    assert (quote["status"], quote["granted_seconds"]) == ("credited", 60)
    assert quote["paid"] == paid.quote["amount"] == str(60 * SECOND)
    assert (gpu["status"], gpu["renter"]) == ("ACTIVE", "default")
    assert told("show", paid.signature)["status"] == "credited"


def test_its_proof_holds_by_itself_and_by_the_chain_and_no_other_does(paid: Paid) -> None:
    told("quotes", "show", paid.quote["quote_id"], "--wait")
    file = paid.folder / "proof.json"
    run("proof", paid.signature, "-o", str(file))

    assert told("verify-proof", str(file))["seconds"] == 60
    assert told("verify-proof", str(file), "--rpc-url", paid.chain.rpc_url)["nodes_asked_now"] == 1
    altered = json.loads(file.read_text())
    key = altered["attestation"]["public_key"]
    signed = told("verify-proof", str(file), "--key", key, "--rpc-url", paid.chain.rpc_url)
    assert (signed["signed_by"], signed["remarks"]) == (key, [])
    assert told("verify-proof", str(file))["signed_by"] is None
    renamed = {**altered, "quotes": [{**altered["quotes"][0], "gpu_instance_id": "gpu_other"}]}
    file.write_text(json.dumps(renamed))
    assert not told("verify-proof", str(file), "--key", key, code=1)["holds"]
    altered["credits"][0]["allocations"][0]["seconds"] = 61
    file.write_text(json.dumps(altered))
    refused = told("verify-proof", str(file), code=1)
    assert not refused["holds"]
    assert any(problem["place"].startswith("/credits/0") for problem in refused["problems"])


@dataclass
class Node:
    """One that tells what it is told to."""

    genesis: str
    answer: dict[str, Any]
    name: str = "mine.test"

    async def genesis_hash(self) -> str:
        return self.genesis

    async def get_transaction(self, _: str) -> Found | NotFound:
        return Found(self.answer, self.name) if self.answer else NotFound(self.name)


async def test_a_node_that_shows_something_else_makes_the_proof_fail(paid: Paid) -> None:
    told("quotes", "show", paid.quote["quote_id"], "--wait")
    proof = told("proof", paid.signature)
    cluster, shown = proof["treasury"]["cluster"], proof["evidence"][0]["answer"]

    async def problems(genesis: str, answer: dict[str, Any]) -> list[str]:
        node: Any = Node(genesis, answer)
        found = await payments_proofs._by_node(proof, paid.signature, cluster, node)
        return [one.words for one in found]

    assert await problems(cluster, json.loads(shown)) == []
    assert await problems(paid.chain.mint, json.loads(shown)) == ["mine.test is of another chain."]
    assert await problems(cluster, {}) == ["mine.test shows no such transaction at finality."]
    assert any("came in and not" in words for words in await problems(cluster, _less_came(shown)))


def _less_came(shown: str) -> dict[str, Any]:
    """The same transaction, had it moved one base unit less."""
    answer: dict[str, Any] = json.loads(shown)
    payer, treasury = sorted(
        answer["meta"]["postTokenBalances"], key=lambda row: int(row["uiTokenAmount"]["amount"]), reverse=True
    )
    for row, change in ((payer, 1), (treasury, -1)):
        row["uiTokenAmount"]["amount"] = str(int(row["uiTokenAmount"]["amount"]) + change)
    return answer


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_statement_is_shown_by_the_chain_and_an_altered_one_is_not(paid: Paid, form: str) -> None:
    told("quotes", "show", paid.quote["quote_id"], "--wait")
    statement = run("ledger", "--format", form).stdout
    file = paid.folder / f"statement.{form}"
    file.write_text(statement, newline="")

    report = told("verify-statement", str(file), *paid.on_chain())
    assert (report["holds"], report["lines"], report["seconds"]) == (True, 1, {"default": 60})
    file.write_text(_doubled(statement, form), newline="")
    report = told("verify-statement", str(file), *paid.on_chain(), code=1)
    assert "the chain shows 60000 left" in " ".join(one["words"] for one in report["differences"])


def _doubled(statement: str, form: str) -> str:
    """Twice the money and twice the time."""
    if form == "json":
        listed = json.loads(statement)
        listed["items"][0] |= {"amount": "120000", "rent_seconds_added": 120}
        return json.dumps(listed)
    rows = list(csv.DictReader(io.StringIO(statement, newline="")))
    rows[0] |= {"amount": "120000", "rent_seconds_added": "120"}
    written = io.StringIO(newline="")
    writer = csv.DictWriter(written, rows[0].keys())
    writer.writeheader()
    writer.writerows(rows)
    return written.getvalue()


def test_a_statement_in_a_token_that_is_not_taken_is_not_shown(paid: Paid) -> None:
    """Which tokens count is the reader's word, not the statement's."""
    told("quotes", "show", paid.quote["quote_id"], "--wait")
    file = paid.folder / "statement.json"
    file.write_text(run("ledger", "--format", "json").stdout)
    chain = paid.chain
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TEMPA_SOLANA__MINTS")
        options = ["--rpc-url", chain.rpc_url, "--treasury", chain.treasury]
        assert not told("verify-statement", str(file), *options, code=1)["holds"]


def test_the_example_gets_its_job_done_once_its_quote_is_paid(paid: Paid) -> None:
    gpu = told("instances", "add", "L40S", "--price", f"{paid.chain.mint}={SECOND}/60")
    command = [sys.executable, str(EXAMPLES / "rent_a_gpu.py"), gpu["id"]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as example:
        try:
            assert example.stdout is not None
            quote_id = example.stdout.readline().partition(":")[0]
            assert CliRunner().invoke(app, ["dev", "pay", quote_id]).exit_code == 0
            said, _ = example.communicate(timeout=PATIENCE_SECONDS)
        finally:
            example.kill()
    assert example.returncode == 0
    assert "60 s are paid for" in said
    assert "is completed" in said


def test_the_ledger_is_what_chain_quotes_and_acts_make_of_it(paid: Paid) -> None:
    """The last one: the server has to stop for it."""
    told("quotes", "show", paid.quote["quote_id"], "--wait")
    data = ["--data", str(paid.folder / "data")]
    told_quotes = told("quotes", "ls")["items"]
    assert "in use" in run("rebuild", *data, code=1).stderr
    assert paid.server.stop() == 0
    for order in ("posted", "chain"):
        rebuilt = told("rebuild", *data, "--order", order)
        assert rebuilt["identical"]
        assert rebuilt["quotes"] == len(told_quotes)
        assert rebuilt["root"] == rebuilt["rebuilt_root"]
