"""The demo's third part: a GPU is quoted, paid for on a chain, credited once, used, and the credit proved."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.cli.demo_chain import wait_until_final
from tempa.cli.demo_console import expect, show, tell
from tempa.cli.demo_webhook import Webhook, check_webhook
from tempa.cli.exits import CommandFault
from tempa.cli.units import in_user_units
from tempa.testing.seeds import SEED_001

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from tempa.cli.demo_chain import DemoChain
    from tempa.client import Client
    from tempa.settlement.wire import QuoteView
    from tempa.testing.receiver import Receiver

_PATH = "/ok/204"  # where the webhook of the credit is sent: any 2xx is success
_TREASURY_SECONDS = 30.0
_CREDIT_SECONDS = 60.0
_JOB_SECONDS = 180.0
_LOOK_SECONDS = 0.05
_HOUR_SECONDS = 3600
_HOUR_BASE_UNITS = "1800000"  # 1.80 of a token of 6 decimals
_CALLS = 2  # of the provider, about the same payment


@dataclass(frozen=True, slots=True)
class Stage:
    """What it is played on."""

    tempa: Client
    server_url: str
    chain: DemoChain
    receiver: Receiver
    folder: Path
    console: Console


def show_rental(stage: Stage) -> None:
    """From a refusal to a proof. Raises CommandFault where something does not hold."""
    tempa, console = stage.tempa, stage.console
    wait_until_known(tempa)
    tell(console, "Chain", f"a Solana of this machine's own; the treasury is {stage.chain.treasury}")
    secret = tempa.register_endpoint(stage.receiver.url(_PATH), events=["gpu_rental.credited"]).secret
    stage.chain.tell(stage.server_url, copies=_CALLS)
    gpu = _offer(tempa, stage.chain.mint, console)
    request = _bound_request(gpu)
    quote = _refused(tempa, request, console)
    signature, final_at = _pay(stage.chain, quote, console)
    credited = _credited(tempa, quote, final_at, console)
    _credited_once(stage, credited, signature)
    _admitted(tempa, request, console)
    expected = Webhook(_PATH, secret, "gpu_rental.credited", stage.folder / "rental-webhook.json")
    data = check_webhook(stage.receiver, expected, ("signature", signature), console)
    expect(data["seconds"] == _HOUR_SECONDS, f"the webhook says {data['seconds']} s")
    _proved(tempa, signature, stage.folder / "proof.json", console)
    show(console, "")


def wait_until_known(tempa: Client) -> None:
    """Until the server has found the treasury's accounts on the chain. Raises CommandFault."""
    deadline = time.monotonic() + _TREASURY_SECONDS
    while not (found := tempa.treasury()).is_known:
        expect(time.monotonic() < deadline, f"payments wait: {found.message}")
        time.sleep(_LOOK_SECONDS)


def _offer(tempa: Client, mint: str, console: Console) -> str:
    """A GPU instance with a price; its id."""
    price: Any = {"asset": mint, "amount": _HOUR_BASE_UNITS, "seconds": _HOUR_SECONDS}
    instance = tempa.add_gpu_instance("H200", [price])
    tell(console, "Instance", f"{instance.id}, for rent at 1.80 tokens an hour, {instance.status}")
    return instance.id


def _bound_request(gpu_instance_id: str) -> dict[str, Any]:
    """Another part than the one that was made: its kernel has to run."""
    parameters = {**SEED_001["parameters"], "length": 200.0}
    return {**SEED_001, "parameters": parameters, "gpu_instance_id": gpu_instance_id}


def _refused(tempa: Client, request: dict[str, Any], console: Console) -> QuoteView:
    """The quote that comes with 402."""
    from tempa.client import TempaProblem
    from tempa.settlement.wire import QuoteView

    try:
        handle = tempa.submit(request)
    except TempaProblem as problem:
        expect(problem.slug == "rental-required", f"the job was refused with {problem.slug}: {problem}")
        expect("quote" in problem.extra, f"there is no quote with the refusal: {problem}")
        quote = QuoteView.model_validate(problem.extra["quote"])
    else:
        raise CommandFault(f"{handle.id} is bound to a GPU that nobody has paid for, and was admitted.")
    amount = in_user_units(quote.amount, quote.decimals)
    told = f"402 rental-required, with quote {quote.quote_id}: {amount} tokens for {quote.seconds} s"
    tell(console, "Refused", told)
    show(console, f"    {quote.solana_pay_url}")
    return quote


def _pay(chain: DemoChain, quote: QuoteView, console: Console) -> tuple[str, float]:
    """The transaction, and the Unix time at which it was final."""
    from tempa.testing.devchain.payments import PaymentFault, pay_request

    rpc = chain.rpc()
    try:
        signature = pay_request(rpc, quote.solana_pay_url, quote.asset)
        final_at = wait_until_final(rpc, signature)
    except PaymentFault as fault:
        raise CommandFault(f"The quote could not be paid: {fault}") from None
    tell(console, "Paid", f"on the chain, as a wallet would: {signature}")
    return signature, final_at


def _credited(tempa: Client, quote: QuoteView, final_at: float, console: Console) -> QuoteView:
    """The quote once it is credited, in full."""
    deadline = time.monotonic() + _CREDIT_SECONDS
    while (found := tempa.quote(quote.quote_id)).status != "credited":
        expect(time.monotonic() < deadline, f"the quote is {found.status}: {found.message}")
        time.sleep(_LOOK_SECONDS)
    expect(found.paid == quote.amount, f"{found.paid} base units were credited of {quote.amount}")
    expect(found.granted_seconds == _HOUR_SECONDS, f"it bought {found.granted_seconds} s")
    assert found.credited is not None, "its status says so"
    lag = max(0.0, found.credited.at.timestamp() - final_at)
    tell(console, "Credited", f"{found.granted_seconds} s of GPU time, {lag:.2f} s after it was final")
    return found


def _credited_once(stage: Stage, quote: QuoteView, signature: str) -> None:
    """The provider has told of it more than once by now, and it bought the same."""
    deadline = time.monotonic() + _CREDIT_SECONDS
    while (calls := _calls_about(stage.chain, signature)) < _CALLS:
        expect(time.monotonic() < deadline, f"the provider was answered {calls} times")
        time.sleep(_LOOK_SECONDS)
    after, payment = stage.tempa.quote(quote.quote_id), stage.tempa.payment(signature)
    given = [part for receipt in payment.receipts for part in receipt.allocations]
    expect(len(given) == 1, f"the payment was given out {len(given)} times")
    expect(after.granted_seconds == quote.granted_seconds, f"it bought {after.granted_seconds} s in the end")
    told = ", ".join(sorted({heard.source for heard in payment.heard}))
    tell(stage.console, "Once", f"told of in {calls} calls ({told}), credited once")


def _calls_about(chain: DemoChain, signature: str) -> int:
    """How often the provider's call about it was answered with 200."""
    answered = (parcel["statuses"] for parcel in chain.told() if signature in parcel["signatures"])
    return sum(statuses.count(200) for statuses in answered)


def _admitted(tempa: Client, request: dict[str, Any], console: Console) -> None:
    """The same request, now that it is paid for."""
    handle = tempa.submit(request)
    job = handle.wait(_JOB_SECONDS)
    expect(job.result is not None and not job.cached, "no kernel ran for it")
    tell(console, "Admitted", f"the same request: 202 {handle.id}, {job.status}")


def _proved(tempa: Client, signature: str, file: Path, console: Console) -> None:
    """The proof holds by itself: no server and no chain is asked."""
    from tempa.settlement.check import Checked, check_proof

    proof = tempa.proof(signature)
    file.write_text(json.dumps(proof, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    checked = check_proof(json.loads(file.read_text(encoding="utf-8")))
    if not isinstance(checked, Checked):
        raise CommandFault("The proof does not hold.", *(f"{one.place}: {one.words}" for one in checked))
    expect(checked.seconds == _HOUR_SECONDS, f"the proof shows {checked.seconds} s")
    expect(checked.signature == signature, f"the proof is of {checked.signature}")
    proof["credits"][0]["receipt"]["amount"] = "1"
    expect(not isinstance(check_proof(proof), Checked), "the proof holds for another amount, too")
    told = f"{file.name}, checked offline: {checked.seconds} s; altered by one amount, it is refused"
    tell(console, "Proof", told)
