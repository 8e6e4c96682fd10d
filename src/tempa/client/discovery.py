"""Which server to call, and with which key: arguments, then the environment, then the local server."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tempa.client.errors import Misconfigured, NotReachable

if TYPE_CHECKING:
    from collections.abc import Mapping

URL_VARIABLE = "TEMPA_URL"
KEY_VARIABLE = "TEMPA_API_KEY"
READY_FILE = "ready.json"

Origin = Literal["argument", "environment", "ready file"]


@dataclass(frozen=True, slots=True)
class Server:
    """A server's address, and the key to use there if one is known."""

    url: str
    api_key: str | None = field(repr=False)
    origin: Origin


def default_data_dir(environment: Mapping[str, str] = os.environ) -> Path:
    """Where `tempa up` keeps its data: `$XDG_DATA_HOME/tempa`, by default ~/.local/share/tempa."""
    home = environment.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(home).expanduser() / "tempa"


def read_ready_file(path: Path) -> dict[str, Any]:
    """What a running server said of itself there; empty if there is none.

    A killed server leaves its file behind. Whoever has its port by now must not be sent its key.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(content, dict) or not isinstance(content.get("url"), str):
        return {}
    return content if _lives(content.get("pid")) else {}


def _lives(pid: object) -> bool:
    """Whether a process of this number is there: one of another user is, too."""
    if not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def discover(
    url: str | None = None, api_key: str | None = None, environment: Mapping[str, str] = os.environ
) -> Server:
    """The server to call.

    The key of the local server is used for the local server only: a TEMPA_URL without a
    TEMPA_API_KEY never sends it elsewhere.

    Raises NotReachable if no server is known at all, Misconfigured if the URL is none.
    """
    local = read_ready_file(default_data_dir(environment) / READY_FILE)
    address = url or environment.get(URL_VARIABLE) or local.get("url")
    if not address:
        detail = f"No Tempa server is known here. Start one with `tempa up`, or set {URL_VARIABLE}."
        raise NotReachable(0, "not-reachable", detail)
    if not address.startswith(("http://", "https://")):
        raise Misconfigured(f"The server's URL must begin with http:// or https://; this is {address!r}.")
    address = address.rstrip("/")
    key = (
        api_key or environment.get(KEY_VARIABLE) or (local.get("api_key") if _same(address, local) else None)
    )
    return Server(address, key, _origin(url, environment))


def _same(address: str, local: Mapping[str, Any]) -> bool:
    return address == str(local.get("url", "")).rstrip("/")


def _origin(url: str | None, environment: Mapping[str, str]) -> Origin:
    if url:
        return "argument"
    return "environment" if environment.get(URL_VARIABLE) else "ready file"
