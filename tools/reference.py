"""Write the reference pages that are made of the code's own tables: `python tools/reference.py`.

A test compares each page with what this script makes, so that no code, problem, event, metric or
setting goes undocumented.
"""

from __future__ import annotations

import re
from pathlib import Path

from tempa.core.errors import CODES, PROBLEMS
from tempa.core.events import FAMILIES, JOB_EVENTS
from tempa.core.limits import Limits
from tempa.core.metrics import METRICS
from tempa.jobs.wire import ANNOUNCED
from tempa.wiring.settings import default_text

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
_MADE = "<!-- made by tools/reference.py; edit the table in the code instead -->\n\n"


def codes() -> str:
    rows = [
        f"| `{name}` | {row.meaning} | {'yes' if row.retryable else 'no'} | {row.auto or ''} | {row.hint or ''} |"
        for name, row in CODES.items()
    ]
    return (
        f"{_MADE}# Codes\n\nWhy a job failed (`error.code`). *Retryable* speaks to you: may asking again help? "
        "*Automatic* is how many times Tempa itself tries again first. `CUDA_OUT_OF_MEMORY` and "
        "`SOURCE_FETCH_FAILED` are retryable by case; the job says which.\n\n"
        "| code | meaning | retryable | automatic | hint |\n|---|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def problems() -> str:
    rows = [
        f"| {kind.status} | `urn:tempa:problem:{slug}` | {kind.title} |"
        for slug, kind in sorted(PROBLEMS.items(), key=lambda entry: (entry[1].status, entry[0]))
    ]
    return (
        f"{_MADE}# Problems\n\nEvery refusal is `application/problem+json` (RFC 9457): `type`, `title`, `status`, "
        "`detail`, `code`, and `errors`, a list of `{pointer, message, limit}` with every fault of the request at "
        "once.\n\n| status | type | title |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def events() -> str:
    log = "\n".join(f"- `{name}`" for name in JOB_EVENTS)
    families = "\n".join(f"| `{family}` | " + ", ".join(f"`{family}.{verb}`" for verb in ANNOUNCED) + " |" for family in FAMILIES)
    return (
        f"{_MADE}# Events\n\n## In a job's log\n\n`GET /v1/jobs/{{id}}/events` (server-sent events) and "
        "`GET /v1/events` (the account's feed). `sequence` counts within a job, without gaps; `position` orders the "
        f"feed and never goes back.\n\n{log}\n\nFractions come as `event: progress`, without an id; they are not "
        "replayed.\n\n## As webhooks\n\nEach engine announces under its family. Without `webhook_events` the "
        "completed, failed and canceled of the job's family are sent; `job.completed` and its like stand for "
        f"whichever family the job is of.\n\n| family | events |\n|---|---|\n{families}\n"
    )


def metrics() -> str:
    rows = [
        f"| `{name}` | {row.kind} | {', '.join(f'`{label}`' for label in row.labels)} | {row.help} |"
        for name, row in METRICS.items()
    ]
    return (
        f"{_MADE}# Metrics\n\n`GET /metrics`, Prometheus text format.\n\n"
        "| name | kind | labels | tells |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def settings() -> str:
    bounds = "\n".join(
        f"| `limits.{name}` | {field.default} |" for name, field in Limits.model_fields.items()
    )
    return (
        f"{_MADE}# Settings\n\nThe default file, really loaded, under every other layer:\n\n```toml\n"
        f"{default_text()}```\n\nIn the environment, `TEMPA_<SECTION>__<KEY>`: `TEMPA_SERVER__PORT=0`, "
        "`TEMPA_WEBHOOKS__ALLOW_NETWORKS='[\"10.1.0.0/16\"]'`, `TEMPA_ENGINES__OPENCASCADE_BREP__TIMEOUT_SECONDS=60` "
        "(an engine's hyphens become underscores).\n\n## Limits\n\nSizes in bytes, lengths in millimetres, times in "
        f"seconds.\n\n| setting | default |\n|---|---|\n{bounds}\n"
    )


PAGES = {"codes.md": codes, "problems.md": problems, "events.md": events, "metrics.md": metrics, "settings.md": settings}


def main() -> None:
    for name, render in PAGES.items():
        text = re.sub(r"[ \t]+\n", "\n", render())
        (REFERENCE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
