"""Write the reference pages that are made of the code's own tables: `python tools/reference.py`.

A test compares each page with what this script makes, so that no code, problem, event, metric or
setting goes undocumented.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tempa.cli.exits import EXIT_CODES
from tempa.cli.main import app
from tempa.core.errors import CODES, PROBLEMS
from tempa.core.events import FAMILIES, JOB_EVENTS, OPERATOR_EVENTS, TEST_EVENT
from tempa.core.limits import Limits
from tempa.core.metrics import METRICS
from tempa.jobs.wire import ANNOUNCED
from tempa.settlement import events as settlement_events
from tempa.settlement.ingress import SIGNATURES_MAX
from tempa.settlement.post import LOCK_TOLERANCE_SECONDS
from tempa.settlement.reasons import REASONS, Kind
from tempa.settlement.rental_views import QUOTE_WORDS
from tempa.settlement.rentals import GRANT_SECONDS_MAX
from tempa.settlement.wire import PRICE_AMOUNT_MAX
from tempa.webhooks.filters import SETTLEMENT_EVENTS
from tempa.wiring.settings import default_text

if TYPE_CHECKING:
    from collections.abc import Iterator

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
MADE = "<!-- made by tools/reference.py; edit the table in the code instead -->\n\n"

_CODES = """\
# Codes

Why a job failed (`error.code`). *Retryable* speaks to you: may asking again help? *Automatic* is how
many times Tempa itself tries again first. `CUDA_OUT_OF_MEMORY` and `SOURCE_FETCH_FAILED` are
retryable by case; the job says which.

| code | meaning | retryable | automatic | hint |
|---|---|---|---|---|
"""

_PROBLEMS = """\
# Problems

Every refusal is `application/problem+json` (RFC 9457): `type`, `title`, `status`, `detail`, `code`, and
`errors`, a list of `{pointer, message, limit}` with every fault of the request at once.

| status | type | title |
|---|---|---|
"""

_LOG = """\
# Events

## In a job's log

`GET /v1/jobs/{id}/events` (server-sent events) and `GET /v1/events` (the account's feed). `sequence`
counts within a job, without gaps; `position` orders the feed and never goes back.

"""

_FAMILIES = """

Fractions come as `event: progress`, without an id; they are not replayed.

## As webhooks

Each engine announces under its family. Without `webhook_events` the completed, failed and canceled
of the job's family are sent; `job.completed` and its like stand for whichever family the job is of.
No engine of `inspection` is in this version; its names are reserved.

| family | events |
|---|---|
"""

_REGISTERED = """
A registered endpoint (`POST /v1/webhooks/endpoints`) gets how jobs end, or what its `events` name: any of
these, `job.*` and its like for whichever family, all of a family (`cad_generation.*`), and what is about
no job, under its own name; `sequence` and `job_id` are null in the feed then.

`endpoint.*` and `delivery.dead` name the endpoint by `endpoint_id` and `host` (with its port). Its `url`,
whose path or query may be a secret, is not in them: whoever may read jobs reads the feed. Reserved names
can be asked for; nothing sends such events in this version. What is in those of rentals and payments
stands in [settlement.md](settlement.md).

| about | events |
|---|---|
"""

_METRICS = """\
# Metrics

`GET /metrics`, Prometheus text format.

| name | kind | labels | tells |
|---|---|---|---|
"""

_SETTINGS = """\
# Settings

The default file, really loaded, under every other layer (`--config` file, environment, flags):

```toml
"""

_LIMITS = """\
```

In the environment, `TEMPA_<SECTION>__<KEY>`, lists as JSON: `TEMPA_SERVER__PORT=0`,
`TEMPA_WEBHOOKS__ALLOW_NETWORKS='["10.1.0.0/16"]'`. An engine's hyphens become underscores:
`TEMPA_ENGINES__OPENCASCADE_BREP__TIMEOUT_SECONDS=60`.

## Limits

Sizes in bytes, lengths in millimetres, times in seconds.

| setting | default |
|---|---|
"""


_SETTLEMENT = """\
# Settlement: reasons, statuses, events, limits

How a payment becomes time, and over which routes, stands in [http.md](http.md#renting); where payments are
heard of in [settlement-sources.md](settlement-sources.md); what an operator sets up and looks after in
[Take payments](../howto/take-payments.md).

## Reasons

Why a payment waits, is refused or was given to nobody: `reason` of a payment, a quote, an anomaly, an account
of the treasury or a node. The words are those of the API, and say what to do.

"""

_EVENTS_OF_SETTLEMENT = """
## Statuses of a quote

Without a `reason`, `message` of a quote says:

| status | message |
|---|---|
"""

_EVENT_DATA = """
## Events

Each is told to the account that it is about; `payment.unmatched` to the account of the quote that it names,
else to the operator's (`default`). An endpoint has to ask for them by name, or by `gpu_rental.*` and
`payment.*`.

| event | when | `data` |
|---|---|---|
"""

_LIMITS_OF_SETTLEMENT = """
`seconds` are those of this payment in `gpu_rental.credited`, and all that the rental was granted in the other
two.

## Limits

| what | limit |
|---|---|
"""

_KINDS = {
    Kind.PENDING: ("Asked again", "Nothing is wrong. The chain is asked again, for as long as it takes."),
    Kind.TRANSIENT: (
        "A node's trouble",
        """Asked again after a while, `payments.max_transient_retries` times within 15 minutes; then it stands
in the anomalies, and the sweep goes on looking. A node that is `node_behind` is not asked meanwhile.""",
    ),
    Kind.TERMINAL: ("Refused", "Final: asking again gives the same."),
    Kind.HOLD: (
        "For a person",
        """Money that waits in suspense, or word of it. It stands in the anomalies until it is re-driven or
resolved.""",
    ),
    Kind.ALARM: (
        "For the operator, at once",
        """Settings, nodes or the treasury are not what they were. Payments wait, and are credited once it is
put right.""",
    ),
}

_CLI = """\
# Command line

`tempa COMMAND --help` says the same. Commands find the local server by themselves; `TEMPA_URL` and
`TEMPA_API_KEY` name another one. People get text, pipes and `--json` get JSON: results on standard
output, everything said on the way on standard error.

| exit code | means |
|---|---|
"""


def codes() -> str:
    rows = [
        _row(f"`{name}`", row.meaning, "yes" if row.retryable else "no", row.auto or "", row.hint or "")
        for name, row in CODES.items()
    ]
    return _CODES + "".join(rows)


def problems() -> str:
    by_status = sorted(PROBLEMS.items(), key=lambda entry: (entry[1].status, entry[0]))
    rows = [_row(kind.status, f"`urn:tempa:problem:{slug}`", kind.title) for slug, kind in by_status]
    return _PROBLEMS + "".join(rows)


def events() -> str:
    log = "\n".join(f"- `{name}`" for name in JOB_EVENTS)
    rows = [_row(f"`{family}`", ", ".join(f"`{family}.{verb}`" for verb in ANNOUNCED)) for family in FAMILIES]
    about = {
        "the account's webhooks": OPERATOR_EVENTS,
        "rentals and payments": SETTLEMENT_EVENTS,
        "a test of one endpoint, sent to it alone": [TEST_EVENT],
    }
    others = [_row(what, ", ".join(f"`{name}`" for name in names)) for what, names in about.items()]
    return _LOG + log + _FAMILIES + "".join(rows) + _REGISTERED + "".join(others)


def metrics() -> str:
    rows = [
        _row(f"`{name}`", row.kind, ", ".join(f"`{label}`" for label in row.labels), row.help)
        for name, row in METRICS.items()
    ]
    return _METRICS + "".join(rows)


def settlement() -> str:
    return (
        _SETTLEMENT
        + "".join(_reasons(kind, *told) for kind, told in _KINDS.items())
        + _EVENTS_OF_SETTLEMENT
        + "".join(_row(f"`{status}`", words) for status, words in QUOTE_WORDS.items())
        + _EVENT_DATA
        + "".join(_settlement_events())
        + _LIMITS_OF_SETTLEMENT
        + "".join(_row(what, limit) for what, limit in _settlement_limits().items())
    )


def _reasons(kind: Kind, title: str, what: str) -> str:
    rows = (_row(f"`{code}`", row.words) for code, row in REASONS.items() if row.kind is kind)
    return f"### {title} (`{kind}`)\n\n{what}\n\n| reason | message |\n|---|---|\n{''.join(rows)}\n"


def _settlement_events() -> Iterator[str]:
    """The data's members are those that the code puts there."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    rental = settlement_events.credited(
        gpu_instance_id="", quote_id="", signature="", seconds=0, expires_at=now
    )
    unmatched = settlement_events.unmatched(signature="", asset="", amount=0, reason="dust")
    rows = (
        (settlement_events.CREDITED, "a payment became time", rental),
        (settlement_events.EXPIRING, "`payments.warn_seconds` before a rental ends", rental),
        (settlement_events.EXPIRED, "a rental and its grace are over", rental),
        (settlement_events.UNMATCHED, "money came that waits for a person", unmatched),
    )
    for name, when, data in rows:
        yield _row(f"`{name}`", when, ", ".join(f"`{member}`" for member in data))


def _settlement_limits() -> dict[str, str]:
    return {
        "a price's `amount`": f"{PRICE_AMOUNT_MAX} base units (2**53 - 1)",
        "seconds of a price, a quote, a rental": f"{GRANT_SECONDS_MAX} (100 years)",
        "prices of an instance": "100, one an asset",
        "a payment after `expires_at` that still has the quote's price": f"{LOCK_TOLERANCE_SECONDS} s",
        "signatures in one call to the ingress": str(SIGNATURES_MAX),
        "body of a call to the ingress": "`limits.json_body_bytes`, packed and unpacked",
        "age of a signed call": "300 s, either way",
    }


def settings() -> str:
    defaults = {name: field.default for name, field in Limits.model_fields.items()}
    rows = [
        _row(f"`limits.{name}`", "any number" if default is None else default)
        for name, default in defaults.items()
    ]
    return _SETTINGS + default_text() + _LIMITS + "".join(rows)


def cli() -> str:
    exits = "".join(_row(f"`{code}`", meaning) for code, meaning in EXIT_CODES.items())
    return _CLI + exits + "".join(_commands(["tempa"], typer.main.get_command(app)))


def _commands(path: list[str], command: Any) -> Iterator[str]:
    """A section each, groups before what is in them."""
    yield _command(path, command)
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands([*path, name], inner)


def _command(path: list[str], command: Any) -> str:
    context = typer.Context(command, info_name=path[-1])
    usage = " ".join([*path, *command.collect_usage_pieces(context)])
    records = (parameter.get_help_record(context) for parameter in command.params if not parameter.hidden)
    rows = [_row(f"`{name}`", _in_cell(meaning)) for name, meaning in filter(None, records)]
    head = "\n| argument or option | meaning |\n|---|---|\n" if rows else ""
    return f"\n## {' '.join(path)}\n\n{command.help}\n\n    {usage}\n{head}" + "".join(rows)


def _in_cell(text: str) -> str:
    """Of one line, and nothing that a table or HTML would take for its own."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _row(*cells: object) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |\n"


PAGES = {
    "codes.md": codes,
    "problems.md": problems,
    "events.md": events,
    "metrics.md": metrics,
    "settings.md": settings,
    "settlement.md": settlement,
    "cli.md": cli,
}


def main() -> None:
    for name, render in PAGES.items():
        (REFERENCE / name).write_text(MADE + render(), encoding="utf-8")


if __name__ == "__main__":
    main()
