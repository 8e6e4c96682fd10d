"""`tempa doctor`: what is set, where it came from, and whether it will work here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote, urlsplit

import typer

from tempa.cli.exits import FAULT
from tempa.cli.output import Json, print_json, wants_json
from tempa.cli.table import print_table
from tempa.cli.up import Config, Data, data_dir

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.cli.checks import Check
    from tempa.wiring.settings import Settings

_MASK = "********"
_USERINFO = re.compile(r"(?<=//)([^:@/?]*:).*(?=@)")  # greedy: a password may hold what should be escaped
_MARKS = {"ok": "ok", "warning": "!!", "fault": "NO"}


def doctor(
    data: Data = None,
    config: Config = None,
    every: Annotated[bool, typer.Option("--all", help="Also settings that have their defaults.")] = False,
    as_json: Json = False,
) -> None:
    """Show every setting with its source, and check this machine. Exit code 1: something will not work."""
    from tempa.cli.checks import run_checks
    from tempa.wiring.settings import load_settings

    settings = load_settings(config)
    shown = effective(settings)
    checks = run_checks(settings, data_dir(data))
    if wants_json(as_json):
        print_json({"settings": shown, "checks": [check.document() for check in checks]})
    else:
        _print_settings(shown, every=every)
        _print_checks(checks)
    if any(check.state == "fault" for check in checks):
        raise typer.Exit(FAULT)


def effective(settings: Settings) -> dict[str, dict[str, Any]]:
    """Each setting by its dotted name: value and source. Secrets that are set are masked."""
    values = _flatten(settings.model_dump(mode="json"))
    return {
        name: {
            "value": _shown(name, value),
            "source": settings.sources.get(name, "default"),
        }
        for name, value in sorted(values.items())
    }


def _shown(name: str, value: Any) -> Any:
    from tempa.wiring.settings import NODE_SETTINGS, SECRET_SETTINGS, URL_SETTINGS

    if name in NODE_SETTINGS:
        return [_place(url) for url in value] if isinstance(value, list) else _place(value)
    if name in URL_SETTINGS:
        return _without_passwords(value)
    return _MASK if name in SECRET_SETTINGS and value else value


def _place(url: str) -> str:
    """Scheme, host and port of a node: its key may stand anywhere behind, or before."""
    parts = urlsplit(url)
    shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    return url if url.rstrip("/") in {"", shown} else f"{shown}/{_MASK}"


def _without_passwords(url: str) -> str:
    place, mark, query = _USERINFO.sub(rf"\1{_MASK}", url).partition("?")
    return place + mark + "&".join(map(_shown_pair, query.split("&")))


def _shown_pair(pair: str) -> str:
    name, sign, value = pair.partition("=")
    return name + sign + (_MASK if "pass" in unquote(name).lower() else value)


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, dict) and value and name != "options":  # an engine's own: shown as they are
            flat |= _flatten(value, f"{prefix}{name}.")
        elif value != {}:
            flat[prefix + name] = value
    return flat


def _print_settings(shown: Mapping[str, Mapping[str, Any]], *, every: bool) -> None:
    rows = [
        (name, entry["value"], entry["source"])
        for name, entry in shown.items()
        if every or entry["source"] != "default"
    ]
    print_table(("setting", "value", "from"), rows, "All settings have their defaults (--all shows them).")


def _print_checks(checks: list[Check]) -> None:
    rows = [(_MARKS[check.state], check.name, check.finding) for check in checks]
    print_table(("", "check", "finding"), rows, "")
