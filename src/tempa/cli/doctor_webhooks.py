"""`tempa webhooks doctor`: play deliveries of every kind to a receiver, and grade it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempa.cli.exits import FAULT, UsageFault
from tempa.cli.output import Json, note, print_json, wants_json
from tempa.cli.table import print_table
from tempa.cli.webhook_secrets import known_secrets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.core.addresses import Network
    from tempa.webhooks.doctor import Case, Finding
    from tempa.webhooks.ports import Answer, Sender

_MARKS = {"pass": "ok", "warn": "!!", "fail": "NO"}


@dataclass(frozen=True, slots=True)
class Report:
    """What an examination came to."""

    url: str
    grade: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def failed(self) -> bool:
        """Whether anything did."""
        return any(finding.state == "fail" for finding in self.findings)

    def document(self) -> dict[str, Any]:
        """For programs."""
        findings = [finding.document() for finding in self.findings]
        return {"url": self.url, "grade": self.grade, "findings": findings, "notes": list(self.notes)}


def doctor(
    url: Annotated[str, typer.Argument(metavar="URL", help="The receiver, as it would be a webhook_url.")],
    secret: Annotated[
        str | None,
        typer.Option(
            envvar="TEMPA_WEBHOOK_SECRET",
            help="What signs: whsec_..., or whsk_... for Ed25519. (default: the local server's)",
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, max=30, help="Seconds for each exchange.")] = 10.0,
    as_json: Json = False,
) -> None:
    """Play good and bad deliveries to a receiver, and grade it A to F. Exit code 1: something failed.

    It must take what is valid, 200 kB long, in any script, of an unknown type, or comes twice; and
    refuse what was changed, is signed by somebody else or not at all, or is an hour old. The events
    are made up (their ids begin with evt_doctor_, tag tempa=doctor): do not let them ship anything.

    They are sent from here, not from a server, to whatever address you name, loopback and private
    ones too. A server is stricter: https to public addresses, unless its settings open more.
    """
    import asyncio

    signing = known_secrets([secret] if secret else None)[0]
    _require_usable(url, signing)
    note(f"Playing deliveries to {url}")
    report = asyncio.run(examine(url, signing, timeout))
    if wants_json(as_json):
        print_json(report.document())
    else:
        _print(report)
    if report.failed:
        raise typer.Exit(FAULT)


async def examine(url: str, secret: str, timeout_seconds: float) -> Report:
    """Play every case, one after the other. `secret` signs: `whsec_...` or `whsk_...`."""
    import asyncio

    from tempa.adapters.senders.curl import CurlSender
    from tempa.cli.certificates import days_left
    from tempa.webhooks import doctor as rules

    sender = CurlSender(_anywhere(), user_agent=_user_agent())
    try:
        findings = await _play_all(sender, url, secret, timeout_seconds)
    finally:
        await sender.close()
    days = await asyncio.to_thread(days_left, url, timeout_seconds)
    if days is not None:
        findings.append(rules.judge_certificate(days))
    return Report(url, rules.grade(findings), tuple(findings), tuple(_notes(url, findings)))


async def _play_all(sender: Sender, url: str, secret: str, timeout_seconds: float) -> list[Finding]:
    from secrets import token_hex

    from tempa.webhooks import doctor as rules

    valid, *others = rules.cases(token_hex(4), int(time.time()))
    stranger = _stranger(secret)
    (answer,) = await _play(sender, url, valid, secret, stranger, timeout_seconds)
    skew = rules.clock_skew_seconds(answer, time.time())
    findings = [rules.judge(valid, [answer])]
    if answer.status is None:  # each of the others would wait as long for the same
        return findings
    for case in others:
        answers = await _play(sender, url, case, secret, stranger, timeout_seconds)
        findings.append(rules.judge(case, answers, valid_taken=rules.is_taken(answer)))
    slowest = max(finding.duration_ms or 0 for finding in findings)
    findings.append(rules.judge_speed(slowest / 1000))
    if skew is not None:
        findings.append(rules.judge_clock(skew))
    return findings


async def _play(
    sender: Sender, url: str, case: Case, secret: str, stranger: str, timeout_seconds: float
) -> list[Answer]:
    from tempa.webhooks.doctor import headers
    from tempa.webhooks.ports import Outbound

    answers = []
    for _ in range(case.times):
        signed = headers(case, secret, stranger, int(time.time()), _user_agent())
        answers.append(await sender.send(Outbound(url, signed, case.body, timeout_seconds)))
    return answers


def _require_usable(url: str, secret: str) -> None:
    from tempa.core.addresses import check_url
    from tempa.core.signing import PUBLIC_KEY_PREFIX
    from tempa.webhooks.signing import signature_entry

    if fault := check_url(url, allow_networks=_anywhere(), allow_http=True):
        raise UsageFault(fault)
    if secret.startswith(PUBLIC_KEY_PREFIX):
        raise UsageFault("whpk_ verifies; give what signs: whsk_, the private key.")
    try:
        signature_entry(secret, "", 0, b"")
    except ValueError as error:
        raise UsageFault(f"The secret cannot be used: {error}.") from None


def _stranger(secret: str) -> str:
    """A key of the same kind that the receiver cannot know."""
    from tempa.core.signing import PRIVATE_KEY_PREFIX, new_secret
    from tempa.webhooks.ed25519 import new_private_key

    return new_private_key() if secret.startswith(PRIVATE_KEY_PREFIX) else new_secret()


def _anywhere() -> tuple[Network, ...]:
    """Who sits at the terminal has named the address, and can call it by other means too."""
    from ipaddress import ip_network

    return (ip_network("0.0.0.0/0"), ip_network("::/0"))


def _user_agent() -> str:
    from tempa import __version__

    return f"Tempa/{__version__}"


def _notes(url: str, findings: Sequence[Finding]) -> list[str]:
    from tempa.core.addresses import check_url

    notes = []
    if len(findings) == 1 or findings[0].status is None:
        notes.append("The other deliveries were not played: nothing answers.")
    if fault := check_url(url):
        notes.append(f"A server takes this URL only if its settings open it (webhooks.*). {fault}")
    return notes


def _print(report: Report) -> None:
    rows = [
        (_MARKS[one.state], one.name, "" if one.duration_ms is None else one.duration_ms, _text(one))
        for one in report.findings
    ]
    print_table(("", "case", "ms", "finding"), rows, "")
    print("\n".join(["", f"Grade: {report.grade}", *report.notes]))


def _text(finding: Finding) -> str:
    text = f"{finding.finding[0].upper()}{finding.finding[1:]}."
    return f"{text} {finding.advice}" if finding.advice else text
