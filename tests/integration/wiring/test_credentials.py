"""Secrets on disk are their owner's alone, and nothing that is logged tells them."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tempa.core.accounts import is_key_text
from tempa.wiring.credentials import CredentialsUnusable, load_credentials, write_private
from tempa.wiring.logs import configure
from tempa.wiring.settings import Log

if TYPE_CHECKING:
    from pathlib import Path


def test_credentials_are_made_once_and_private(tmp_path: Path) -> None:
    made = load_credentials(tmp_path)
    assert load_credentials(tmp_path) == made
    assert is_key_text(made.api_key)
    assert made.webhook_secret.startswith("whsec_")
    assert stat.S_IMODE((tmp_path / "credentials.json").stat().st_mode) == 0o600


def test_a_derived_key_is_stable_and_one_purpose_tells_nothing_of_another(tmp_path: Path) -> None:
    made = load_credentials(tmp_path)
    assert made.derive("links") == made.derive("links")
    assert made.derive("links") != made.derive("other")
    assert len(made.derive("links")) == 32


DAMAGES: dict[str, Callable[[str], str]] = {
    "empty": lambda text: "",
    "torn": lambda text: text[: len(text) // 2],
    "no UTF-8": lambda text: "\udcff" + text,
    "a list": lambda text: "[]",
    "too much": lambda text: json.dumps({**json.loads(text), "more": "x"}),
    "too little": lambda text: json.dumps({"api_key": json.loads(text)["api_key"]}),
    "no key": lambda text: text.replace("tempa_sk_", "tempa_"),
    "no secret": lambda text: text.replace("whsec_", "whsec_!"),
    "short": lambda text: json.dumps({**json.loads(text), "master_key": "ab" * 31}),
    "a number": lambda text: json.dumps({**json.loads(text), "master_key": 7}),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_credentials_that_are_damaged_are_told_with_the_way_out_and_left_alone(
    tmp_path: Path, damage: Callable[[str], str]
) -> None:
    made = load_credentials(tmp_path)
    path = tmp_path / "credentials.json"
    path.write_text(damage(path.read_text()), errors="surrogateescape")
    before = path.read_bytes()

    with pytest.raises(CredentialsUnusable, match="Restore it from a backup; or move it away") as caught:
        load_credentials(tmp_path)

    assert str(caught.value).startswith(f"{path} cannot be used: ")
    assert path.read_bytes() == before
    for secret in (made.api_key, made.webhook_secret, made.master_key):
        assert secret not in str(caught.value)


def test_a_private_file_appears_whole(tmp_path: Path) -> None:
    write_private(tmp_path / "a", "one")
    write_private(tmp_path / "a", "two")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "two"


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_logged_failure_tells_no_local_variable(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = (tmp_path / "log").open("w")
    monkeypatch.setattr("sys.stderr", told)
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    try:
        writer = configure(Log.model_validate({"level": "info", "format": form}))
        _fail_with("tempa_sk_very-secret")
        writer.drain()
    finally:
        root.handlers[:], root.level = before
    told.close()
    text = (tmp_path / "log").read_text()
    assert "ZeroDivisionError" in text
    assert "very-secret" not in text
    if form == "json":
        (line,) = text.splitlines()
        assert json.loads(line)["job_id"] == "cad_1"


def _fail_with(api_key: str) -> None:
    try:
        assert len(api_key) / 0
    except ZeroDivisionError:
        logging.getLogger("tempa.test").exception("it failed", extra={"job_id": "cad_1"})


def test_a_private_file_that_finds_no_room_is_named_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_private(tmp_path / "a", "one")

    def no_room(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # as fsync does: without a name

    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(OSError, match=f"No space left on device: '{tmp_path / 'a'}'"):
        write_private(tmp_path / "a", "two")

    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "one"
