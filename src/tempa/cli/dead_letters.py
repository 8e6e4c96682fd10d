"""`tempa dead-letters`: webhooks that could not be delivered, and what to do about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tempa.cli import connect
from tempa.cli.exits import UsageFault
from tempa.cli.output import Json, print_json, print_table, wants_json
from tempa.cli.show import stamp

if TYPE_CHECKING:
    from tempa.client.calls import DeadLetterFilter

app = typer.Typer(help="Webhooks that could not be delivered.", no_args_is_help=True)

Ids = Annotated[list[str] | None, typer.Argument(metavar="[DELIVERY_ID]...", help="Single deliveries.")]


@app.command("ls")
def list_groups(as_json: Json = False) -> None:
    """List dead letters in groups of one address and reason."""
    with connect.open_client() as tempa:
        groups = tempa.dead_letters()
    if wants_json(as_json):
        print_json({"items": [group.model_dump(mode="json") for group in groups]})
        return
    rows = [
        (each.group, each.count, each.reason, each.url, stamp(each.newest), each.what_next) for each in groups
    ]
    columns = ("group", "letters", "reason", "address", "newest", "what next")
    print_table(columns, rows, "There are no dead letters.")


@app.command("show")
def show_group(
    group: Annotated[str, typer.Argument(help="A group's id, from `tempa dead-letters ls`.")],
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    as_json: Json = False,
) -> None:
    """Show the letters of a group, newest first."""
    with connect.open_client() as tempa:
        letters = list(tempa.dead_letters_in(group, limit=limit))
    if wants_json(as_json):
        print_json({"items": [letter.model_dump(mode="json") for letter in letters]})
        return
    rows = [
        (each.delivery_id, each.type, each.job_id, each.attempt_count, stamp(each.finished_at))
        for each in letters
    ]
    print_table(("delivery", "event", "job", "attempts", "died"), rows, "There are no such letters.")


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
    """Send dead letters again: those that meet all given conditions."""
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
        print_json(answer.model_dump(mode="json"))
    elif dry_run:
        print(f"{answer.matched} would be sent again.")
    else:
        print(f"{answer.redriven} of {answer.matched} are sent again.")


@app.command("discard")
def discard(
    delivery_ids: Annotated[list[str], typer.Argument(metavar="DELIVERY_ID...", help="Which ones.")],
    reason: Annotated[str, typer.Option(help="Why; it is kept.")],
    as_json: Json = False,
) -> None:
    """Give dead letters up for good."""
    with connect.open_client() as tempa:
        answer = tempa.discard(delivery_ids, reason)
    if wants_json(as_json):
        print_json(answer.model_dump(mode="json"))
    else:
        print(f"{answer.discarded} discarded.")
