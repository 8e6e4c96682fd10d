"""The client that commands use, and the local server's ready file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tempa.client import Client

_TIMEOUT_SECONDS = 4.0  # a person is waiting; a server that starts again takes one or two


def open_client(timeout_seconds: float = _TIMEOUT_SECONDS) -> Client:
    """A client of the server that arguments, environment or the ready file name."""
    from tempa.client import Client

    return Client(timeout_seconds=timeout_seconds)


def local_server() -> dict[str, Any]:
    """What the local server said of itself when it last started; empty if it never did."""
    from tempa.client.discovery import READY_FILE, default_data_dir, read_ready_file

    return read_ready_file(default_data_dir() / READY_FILE)


def answers(url: str) -> bool:
    """Whether a server lives at `url`, now."""
    import httpx2

    try:
        return httpx2.get(f"{url}/livez", timeout=2.0, trust_env=False).status_code == 200
    except httpx2.TransportError:
        return False
