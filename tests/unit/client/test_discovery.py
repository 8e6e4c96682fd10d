"""Which server, which key: arguments, environment, the local server's ready file, in this order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tempa.client.discovery import default_data_dir, discover
from tempa.client.errors import Misconfigured, NotReachable

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment whose local server runs at port 8787."""
    folder = tmp_path / "tempa"
    folder.mkdir()
    ready = {"url": "http://127.0.0.1:8787", "api_key": "local-key", "pid": 1}
    (folder / "ready.json").write_text(json.dumps(ready))
    return {"XDG_DATA_HOME": str(tmp_path)}


def test_the_local_server_is_found_with_its_key(home: dict[str, str]) -> None:
    server = discover(environment=home)

    assert (server.url, server.api_key, server.origin) == ("http://127.0.0.1:8787", "local-key", "ready file")


def test_the_environment_wins_over_the_local_server(home: dict[str, str]) -> None:
    environment = {**home, "TEMPA_URL": "https://tempa.example/", "TEMPA_API_KEY": "remote-key"}

    server = discover(environment=environment)

    assert (server.url, server.api_key) == ("https://tempa.example", "remote-key")
    assert server.origin == "environment"


def test_arguments_win_over_everything(home: dict[str, str]) -> None:
    environment = {**home, "TEMPA_URL": "https://tempa.example", "TEMPA_API_KEY": "remote-key"}

    server = discover("https://other.example", "my-key", environment)

    assert (server.url, server.api_key, server.origin) == ("https://other.example", "my-key", "argument")


@pytest.mark.parametrize("environment", [{"TEMPA_URL": "https://tempa.example"}, {}])
def test_the_local_key_is_never_sent_to_another_server(
    home: dict[str, str], environment: dict[str, str]
) -> None:
    url = None if environment else "https://tempa.example"

    assert discover(url, environment={**home, **environment}).api_key is None


def test_the_local_server_named_in_so_many_words_gets_its_key(home: dict[str, str]) -> None:
    assert discover("http://127.0.0.1:8787/", environment=home).api_key == "local-key"


# Whoever listens on its port by now must not be sent its key.
KILLED = '{"url": "http://127.0.0.1:8787", "api_key": "k", "pid": 4194305}'  # above the kernel's most


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"api_key": "k"}', '{"url": 5}', KILLED])
def test_without_a_server_it_says_how_to_start_one(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "tempa").mkdir()
        (tmp_path / "tempa/ready.json").write_text(content)

    with pytest.raises(NotReachable, match="tempa up"):
        discover(environment={"XDG_DATA_HOME": str(tmp_path)})


def test_a_url_without_a_scheme_is_refused_in_words(home: dict[str, str]) -> None:
    with pytest.raises(Misconfigured, match=r"must begin with http:// or https://.*'localhost:8787'"):
        discover(environment={**home, "TEMPA_URL": "localhost:8787"})


def test_the_key_does_not_show_when_a_server_is_printed(home: dict[str, str]) -> None:
    assert "local-key" not in repr(discover(environment=home))


def test_the_data_directory_follows_the_xdg_rules() -> None:
    assert str(default_data_dir({"XDG_DATA_HOME": "/data"})) == "/data/tempa"
    assert default_data_dir({}).parts[-3:] == (".local", "share", "tempa")
