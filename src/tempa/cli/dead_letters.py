"""`tempa dead-letters`: webhooks that could not be delivered, and what to do about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tempa.cli import connect
from tempa.cli.exits import FAULT, CommandFault, UsageFault
from tempa.cli.output import Json, note, print_json, sent, wants_json
from tempa.cli.show import stamp
from tempa.cli.table import on_one_line, print_table

if TYPE_CHECKING:
    from tempa.client.calls import DeadLetterFilter
    from tempa.webhooks.wire import AttemptView, DeliveryRecord, DeliveryView

_DELIVERY_PREFIX = "dlv_"
_EXCERPT_CHARACTERS = 200  # of the 16 KiB that are kept; JSON has them all

app = typer.Typer(help="Webhooks that could not be delivered.", no_args_is_help=True)

Ids = Annotated[list[str] | None, typer.Argument(metavar="[DELIVERY_ID]...", help="Single deliveries.")]


@app.command("ls")
def list_groups(as_json: Json = False) -> None:
    """List dead letters in groups of one address and reason."""
    with connect.open_client() as tempa:
        groups = tempa.dead_letters()
    if wants_json(as_json):
        print_json({"items": [sent(group) for group in groups]})
        return
    rows = [(each.group, each.count, each.reason, stamp(each.newest), each.url) for each in groups]
    print_table(("group", "letters", "reason", "newest", "address"), rows, "There are no dead letters.")
    for each in groups:
        print(f"{each.group}: {each.what_next}")


@app.command("show")
def show(
    which: Annotated[str, typer.Argument(metavar="ID", help="A group, or one delivery of it (dlv_...).")],
    limit: Annotated[int, typer.Option(min=1, help="At most so many letters of a group.")] = 50,
    as_json: Json = False,
) -> None:
    """Show the letters of a group, newest first; or one delivery with every attempt."""
    if which.startswith(_DELIVERY_PREFIX):
        with connect.open_client() as tempa:
            _print_delivery(tempa.delivery(which), as_json)
        return
    with connect.open_client() as tempa:
        letters = list(tempa.dead_letters_in(which, limit=limit))
    if not letters:
        raise CommandFault(f"There is no group {which} of dead letters. `tempa dead-letters ls` lists them.")
    _print_letters(letters, as_json)


def _print_letters(letters: list[DeliveryView], as_json: bool) -> None:
    if wants_json(as_json):
        print_json({"items": [sent(letter) for letter in letters]})
        return
    rows = [
        (each.delivery_id, each.type, each.job_id, each.attempt_count, stamp(each.finished_at))
        for each in letters
    ]
    print_table(("delivery", "event", "job", "attempts", "died"), rows, "")


def _print_delivery(record: DeliveryRecord, as_json: bool) -> None:
    if wants_json(as_json):
        print_json(sent(record))
        return
    print(f"{record.delivery_id}  {record.status}" + (f" ({record.reason})" if record.reason else ""))
    about = f" of {record.job_id}" if record.job_id else ""
    print(f"  {record.type}{about}, to {record.url}")
    print(f"  {record.what_next}")
    if record.discard_reason:
        print(f"  discarded: {on_one_line(record.discard_reason)}")
    columns = ("attempt", "started", "outcome", "ms", "answer")
    rows = [
        (each.attempt, stamp(each.started_at), each.outcome or "(none)", each.duration_ms, _answer(each))
        for each in record.attempts
    ]
    print_table(columns, rows, "  It has not been tried.")
    for hint, numbers in _hints(record.attempts).items():
        print(f"  {', '.join(numbers)}: {on_one_line(hint)}")


def _hints(attempts: list[AttemptView]) -> dict[str, list[str]]:
    """What the attempts hint at, each once with the numbers of those that do."""
    found: dict[str, list[str]] = {}
    for each in attempts:
        if each.hint:
            found.setdefault(each.hint, []).append(str(each.attempt))
    return found


def _answer(attempt: AttemptView) -> str:
    """Status, error and the beginning of what the receiver said."""
    status = "" if attempt.http_status is None else str(attempt.http_status)
    excerpt = " ".join(attempt.response_excerpt.split())[:_EXCERPT_CHARACTERS]
    return "; ".join(part for part in (status, attempt.error, excerpt) if part)


@app.command("redrive")
def redrive(
    delivery_ids: Ids = None,
    group: Annotated[str | None, typer.Option(help="All letters of this group.")] = None,
    endpoint: Annotated[str | None, typer.Option(help="All letters to this endpoint.")] = None,
    since: Annotated[str | None, typer.Option(help="All that died since, RFC 3339.")] = None,
    rate: Annotated[float | None, typer.Option(min=0.001, help="At most so many a second.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count them.")] = False,
    as_json: Json = False,
) -> None:
    """Send dead letters again: those that meet all given conditions. Exit code 1: there are none."""
    given = {
        "delivery_ids": delivery_ids or None,
        "group": group,
        "endpoint_id": endpoint,
        "since": since,
    }
    conditions: DeadLetterFilter = {name: value for name, value in given.items() if value is not None}  # type: ignore[assignment]
    if not conditions:
        raise UsageFault("Say which: delivery ids, --group, --endpoint or --since.")
    with connect.open_client() as tempa:
        answer = tempa.redrive(dry_run=dry_run, rate_per_second=rate, **conditions)
    if wants_json(as_json):
        print_json(sent(answer))
    elif dry_run and answer.matched:
        print(f"{answer.matched} would be sent again.")
    elif answer.matched:
        print(f"{answer.redriven} of {answer.matched} are sent again.")
    if not answer.matched:
        _tell_none()


@app.command("discard")
def discard(
    delivery_ids: Annotated[list[str], typer.Argument(metavar="DELIVERY_ID...", help="Which ones.")],
    reason: Annotated[str, typer.Option(help="Why; it is kept.")],
    as_json: Json = False,
) -> None:
    """Give dead letters up for good. Exit code 1: there are none."""
    with connect.open_client() as tempa:
        answer = tempa.discard(delivery_ids, reason)
    if wants_json(as_json):
        print_json(sent(answer))
    elif answer.discarded:
        print(f"{answer.discarded} discarded.")
    if not answer.discarded:
        _tell_none()


def _tell_none() -> None:
    note("No dead letter is meant by that. `tempa dead-letters ls` lists them.")
    raise typer.Exit(FAULT)
