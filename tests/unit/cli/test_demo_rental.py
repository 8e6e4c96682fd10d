"""The demo of a rental believes nothing either: what does not hold ends it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from tempa.cli import demo_rental
from tempa.cli.exits import CommandFault
from tempa.client import TempaProblem
from tempa.settlement.wire import PaymentView, QuoteView, TreasuryView
from tests.unit.cli.test_payments import CREDITED, PAYMENT, QUOTE, SIGNATURE, TREASURY

if TYPE_CHECKING:
    from pathlib import Path

OPEN, PAID = QuoteView.model_validate(QUOTE), QuoteView.model_validate(CREDITED)


class Tempa:
    """A client that answers what it was made with."""

    def __init__(self, **answers: Any) -> None:
        self._answers = answers

    def __getattr__(self, name: str) -> Any:
        def answer(*_: Any, **__: Any) -> Any:
            found = self._answers[name]
            if isinstance(found, Exception):
                raise found
            return found

        return answer


class Handle:
    id = "cad_1"


class Chain:
    """Its provider was answered so."""

    def __init__(self, *statuses: int) -> None:
        self._statuses = list(statuses)

    def told(self) -> list[Any]:
        return [{"signatures": [SIGNATURE], "statuses": self._statuses}]


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO())


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_CREDIT_SECONDS", "_TREASURY_SECONDS", "_LOOK_SECONDS"):
        monkeypatch.setattr(demo_rental, name, 0.0)


def test_a_job_that_nobody_paid_for_must_be_refused(console: Console) -> None:
    with pytest.raises(CommandFault, match="was admitted"):
        demo_rental._refused(Tempa(submit=Handle()), {}, console)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (TempaProblem(409, "instance-rented", "No."), "refused with instance-rented"),
        (TempaProblem(402, "rental-required", "No."), "no quote with the refusal"),
    ],
    ids=["for another reason", "without a quote"],
)
def test_the_refusal_must_be_402_with_a_quote(problem: Exception, words: str, console: Console) -> None:
    with pytest.raises(CommandFault, match=words):
        demo_rental._refused(Tempa(submit=problem), {}, console)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"status": "suspense", "message": "It waits."}, "the quote is suspense: It waits"),
        ({"paid": "1799999"}, "1799999 base units were credited"),
        ({"granted_seconds": 3599}, "it bought 3599 s"),
    ],
    ids=["nothing", "too little money", "too little time"],
)
def test_the_credit_must_be_whole(changed: dict[str, Any], words: str, console: Console) -> None:
    found = QuoteView.model_validate({**CREDITED, **changed})
    with pytest.raises(CommandFault, match=words):
        demo_rental._credited(Tempa(quote=found), OPEN, 0.0, console)  # type: ignore[arg-type]


def stage(tempa: Tempa, chain: Chain, console: Console, folder: Path) -> demo_rental.Stage:
    parts: Any = (tempa, "http://tempa.test", chain, None, folder, console)
    return demo_rental.Stage(*parts)


def test_a_payment_told_of_twice_must_be_credited_once(console: Console, tmp_path: Path) -> None:
    payment = PaymentView.model_validate(PAYMENT)
    twice = PaymentView.model_validate({**PAYMENT, "receipts": PAYMENT["receipts"] * 2})
    more = QuoteView.model_validate({**CREDITED, "granted_seconds": 7200})
    chain = Chain(200, 200)

    good = stage(Tempa(quote=PAID, payment=payment), chain, console, tmp_path)
    again = stage(Tempa(quote=PAID, payment=twice), chain, console, tmp_path)
    longer = stage(Tempa(quote=more, payment=payment), chain, console, tmp_path)

    demo_rental._credited_once(good, PAID, SIGNATURE)
    with pytest.raises(CommandFault, match="given out 2 times"):
        demo_rental._credited_once(again, PAID, SIGNATURE)
    with pytest.raises(CommandFault, match="it bought 7200 s"):
        demo_rental._credited_once(longer, PAID, SIGNATURE)


def test_a_provider_that_was_not_answered_twice_shows_nothing(console: Console, tmp_path: Path) -> None:
    played = stage(Tempa(), Chain(200, 401), console, tmp_path)
    with pytest.raises(CommandFault, match="answered 1 times"):
        demo_rental._credited_once(played, PAID, SIGNATURE)


def test_a_document_that_proves_nothing_does_not_pass(console: Console, tmp_path: Path) -> None:
    with pytest.raises(CommandFault, match="does not hold"):
        demo_rental._proved(Tempa(proof={}), SIGNATURE, tmp_path / "proof.json", console)  # type: ignore[arg-type]


def test_a_treasury_that_stays_unknown_is_told_in_the_servers_words() -> None:
    unknown = TreasuryView.model_validate({**TREASURY, "is_known": False, "message": "No node answers."})
    with pytest.raises(CommandFault, match="No node answers"):
        demo_rental.wait_until_known(Tempa(treasury=unknown))  # type: ignore[arg-type]
