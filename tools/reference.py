"""Write the reference pages that are made of the code's own tables: `python tools/reference.py`.

A test compares each page with what this script makes, so that no code, problem, event, metric or
setting goes undocumented.
"""

from __future__ import annotations

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
Only `cad_generation` has an engine in this version; the other names are reserved.

| family | events |
|---|---|
"""

_REGISTERED = """
A registered endpoint (`POST /v1/webhooks/endpoints`) gets how jobs end, or what its `events` name: any of
these, `job.*` and its like for whichever family, all of a family (`cad_generation.*`), and what is about
no job, under its own name; `sequence` and `job_id` are null in the feed then.

`endpoint.*` and `delivery.dead` name the endpoint by `endpoint_id` and `host` (with its port). Its `url`,
whose path or query may be a secret, is not in them: whoever may read jobs reads the feed. Reserved names
can be asked for; nothing sends such events in this version.

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
        "rentals and payments (reserved)": SETTLEMENT_EVENTS,
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
    "cli.md": cli,
}


def main() -> None:
    for name, render in PAGES.items():
        (REFERENCE / name).write_text(MADE + render(), encoding="utf-8")


if __name__ == "__main__":
    main()
