"""`tempa webhooks endpoints`: where all of an account's events go, and `tempa webhooks test`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from tempa.cli import connect
from tempa.cli.exits import FAULT, UsageFault
from tempa.cli.output import Json, note, print_json, wants_json
from tempa.cli.show import stamp
from tempa.cli.table import on_one_line, print_table

if TYPE_CHECKING:
    from tempa.client import Client
    from tempa.client.calls import EndpointOptions
    from tempa.webhooks.wire import DeliveryRecord, EndpointSecret, EndpointView, TestSent

_Given = TypeVar("_Given")

_PREFIX = "ep_"
_LOOK_SECONDS = 0.2
_WAITING = ("pending", "leased")

app = typer.Typer(help="Registered endpoints: where all of an account's events go.", no_args_is_help=True)

EndpointId = Annotated[str, typer.Argument(metavar="ENDPOINT", help="ep_...: `tempa webhooks endpoints ls`.")]


@app.command("ls")
def list_endpoints(as_json: Json = False) -> None:
    """List them, newest first."""
    with connect.open_client() as tempa:
        found = list(tempa.endpoints())
    if wants_json(as_json):
        print_json({"items": [each.model_dump(mode="json") for each in found]})
        return
    rows = [(each.id, _state(each), each.pending, _events(each), each.url) for each in found]
    columns = ("endpoint", "state", "waiting", "events", "address")
    print_table(columns, rows, "There are no endpoints. `tempa webhooks endpoints add URL` makes one.")


@app.command("add")
def add_endpoint(
    url: Annotated[str, typer.Argument(help="https to a public address.")],
    event: Annotated[
        list[str] | None, typer.Option(help="May be given several times. (default: how jobs end)")
    ] = None,
    description: Annotated[str, typer.Option(help="For people.")] = "",
    ed25519: Annotated[
        bool, typer.Option("--ed25519", help="Sign by a key pair, not a shared secret.")
    ] = False,
    retry_status: Annotated[
        list[int] | None, typer.Option(min=400, max=499, help="Tried again, besides 408 and 429.")
    ] = None,
    max_in_flight: Annotated[int | None, typer.Option(min=1, max=64, help="Attempts at once.")] = None,
    rate: Annotated[float | None, typer.Option(min=0.001, help="Attempts a second at most.")] = None,
    as_json: Json = False,
) -> None:
    """Register one. Its secret is shown this once."""
    given: EndpointOptions = {
        "events": event or None,
        "description": description,
        "retry_statuses": retry_status or [],
        "rate_per_second": rate,
    }
    if max_in_flight is not None:
        given["max_in_flight"] = max_in_flight
    with connect.open_client() as tempa:
        made = tempa.register_endpoint(url, signing="ed25519" if ed25519 else None, **given)
    _print_secret(made, f"{made.id} gets events from now on.", as_json)


@app.command("show")
def show_endpoint(endpoint: EndpointId, as_json: Json = False) -> None:
    """Show one, also that of a job's webhook_url: what it asks for, and how it fares."""
    with connect.open_client() as tempa:
        _print_endpoint(tempa.endpoint(endpoint), as_json)


@app.command("set")
def change_endpoint(
    endpoint: EndpointId,
    url: Annotated[str | None, typer.Option(help="Where its events go from now on; what waits, too.")] = None,
    event: Annotated[list[str] | None, typer.Option(help="Which; may be given several times.")] = None,
    default_events: Annotated[bool, typer.Option("--default-events", help="How jobs end.")] = False,
    description: Annotated[str | None, typer.Option(help="For people.")] = None,
    retry_status: Annotated[
        list[int] | None, typer.Option(min=400, max=499, help="Tried again, besides 408 and 429.")
    ] = None,
    no_retry_status: Annotated[bool, typer.Option("--no-retry-status", help="No others than those.")] = False,
    max_in_flight: Annotated[int | None, typer.Option(min=1, max=64, help="Attempts at once.")] = None,
    rate: Annotated[float | None, typer.Option(min=0.001, help="Attempts a second at most.")] = None,
    no_rate: Annotated[bool, typer.Option("--no-rate", help="Any number a second.")] = False,
    as_json: Json = False,
) -> None:
    """Change what is given of one, and leave the rest."""
    changed: EndpointOptions = {}
    if event or default_events:
        changed["events"] = _either("--event", event, default_events, "--default-events")
    if description is not None:
        changed["description"] = description
    if retry_status or no_retry_status:
        statuses = _either("--retry-status", retry_status, no_retry_status, "--no-retry-status")
        changed["retry_statuses"] = statuses or []
    if max_in_flight is not None:
        changed["max_in_flight"] = max_in_flight
    if rate is not None or no_rate:
        changed["rate_per_second"] = _either("--rate", rate, no_rate, "--no-rate")
    if url is None and not changed:
        raise UsageFault("Say what to change: --url, --event, --description, --rate and the like.")
    with connect.open_client() as tempa:
        _print_endpoint(tempa.change_endpoint(endpoint, url=url, **changed), as_json)


def _either(name: str, given: _Given | None, dropped: bool, other: str) -> _Given | None:
    """What is given; None to go back to the default."""
    if given and dropped:
        raise UsageFault(f"{name} and {other} exclude each other.")
    return None if dropped else given


@app.command("rm")
def remove_endpoint(endpoint: EndpointId, as_json: Json = False) -> None:
    """End one. What waits there is canceled."""
    with connect.open_client() as tempa:
        tempa.remove_endpoint(endpoint)
    if wants_json(as_json):
        print_json({"id": endpoint, "removed": True})
    else:
        print(f"{endpoint} is removed.")


@app.command("rotate")
def rotate_secret(
    endpoint: EndpointId,
    overlap: Annotated[
        float | None,
        typer.Option(
            min=0, max=604_800, help="Seconds that the older ones sign too; 0 ends them. (default: a day)"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Give one a new secret, shown this once."""
    with connect.open_client() as tempa:
        made = tempa.rotate_endpoint(endpoint, overlap_seconds=overlap)
    ends = [each.expires_at for each in made.secrets[1:] if each.expires_at]
    until = f" The older ones sign too, until {stamp(max(ends))}." if ends else " No older one is left."
    _print_secret(made, f"{made.id} has a new secret.{until}", as_json)


@app.command("pause")
def pause_endpoint(endpoint: EndpointId, as_json: Json = False) -> None:
    """Park what comes for one, until it is resumed."""
    with connect.open_client() as tempa:
        _print_endpoint(tempa.pause_endpoint(endpoint), as_json)


@app.command("resume")
def resume_endpoint(endpoint: EndpointId, as_json: Json = False) -> None:
    """Send to one again, after a pause, a 410 or an outage."""
    with connect.open_client() as tempa:
        _print_endpoint(tempa.resume_endpoint(endpoint), as_json)


@app.command("test")
def send_test(
    endpoint: Annotated[str, typer.Argument(metavar="ENDPOINT|URL", help="ep_..., or the address of one.")],
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait for its answer.")] = 15.0,
    as_json: Json = False,
) -> None:
    """Send one a webhook.test event, and say what it answered. Exit code 1: it did not take it."""
    with connect.open_client() as tempa:
        sent = _sent(tempa, _id_of(tempa, endpoint))
        record = _outcome(tempa, sent.delivery_id, wait)
    if wants_json(as_json):
        print_json(record.model_dump(mode="json"))
    else:
        _print_outcome(record)
    if record.status != "delivered":
        raise typer.Exit(FAULT)


def _sent(tempa: Client, endpoint_id: str) -> TestSent:
    """The test. That there is no such endpoint is no answer of it, which has exit code 1."""
    from tempa.client import TempaProblem

    try:
        return tempa.test_endpoint(endpoint_id)
    except TempaProblem as problem:
        if problem.status not in (404, 409):
            raise
        raise UsageFault(problem.detail) from None


def _id_of(tempa: Client, endpoint: str) -> str:
    if endpoint.startswith(_PREFIX):
        return endpoint
    found = [each.id for each in tempa.endpoints() if each.url == endpoint]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageFault(f"{len(found)} endpoints have this address; name one: {', '.join(found)}.")
    raise UsageFault(
        f"No registered endpoint has the address {endpoint}.",
        "`tempa webhooks endpoints add` registers it; `tempa webhooks doctor` tries an address as it is.",
    )


def _outcome(tempa: Client, delivery_id: str, wait_seconds: float) -> DeliveryRecord:
    """The delivery once it was attempted; as it is, when the time is over."""
    from tempa.client.drivers import sleep

    left = wait_seconds
    while True:
        record = tempa.delivery(delivery_id)
        attempted = any(each.outcome != "unknown" for each in record.attempts)
        if record.status not in _WAITING or attempted or left <= 0:
            return record
        sleep(_LOOK_SECONDS)
        left -= _LOOK_SECONDS


def _print_outcome(record: DeliveryRecord) -> None:
    last = record.attempts[-1] if record.attempts else None
    answer = last and (last.http_status or last.error)
    print(f"{record.delivery_id}  {record.status}" + (f", answered {answer}" if answer else ""))
    if record.status != "delivered":
        print(f"  {record.what_next}")
    if last and last.hint:
        print(f"  {on_one_line(last.hint)}")


def _print_secret(made: EndpointSecret, told: str, as_json: bool) -> None:
    if wants_json(as_json):
        print_json(made.model_dump(mode="json"))
        return
    print(made.secret)
    kind = "verifies what it is sent" if made.signing == "ed25519" else "is not shown again"
    note(f"{told} The {'public key' if made.signing == 'ed25519' else 'secret'} {kind}.")


def _print_endpoint(endpoint: EndpointView, as_json: bool) -> None:
    if wants_json(as_json):
        print_json(endpoint.model_dump(mode="json"))
        return
    print(f"{endpoint.id}  {_state(endpoint)}  {endpoint.url}")
    print(f"  events: {_events(endpoint)}; signed by {endpoint.signing}")
    print(f"  {endpoint.pending} waiting; at most {_most(endpoint)}")
    for name, at in (
        ("parked since", endpoint.parked_at),
        ("held until", endpoint.held_until),
        ("next probe", endpoint.breaker.next_probe_at),
    ):
        if at is not None:
            print(f"  {name} {stamp(at)}")
    if endpoint.description:
        print(f"  {endpoint.description}")


def _state(endpoint: EndpointView) -> str:
    is_down = endpoint.status == "active" and endpoint.breaker.state == "open"
    return "down" if is_down else endpoint.status


def _events(endpoint: EndpointView) -> str:
    return "how jobs end" if endpoint.events is None else ", ".join(endpoint.events)


def _most(endpoint: EndpointView) -> str:
    rate = endpoint.rate_per_second
    return f"{endpoint.max_in_flight} at once" + (f", {rate:g} a second" if rate else "")
