"""Secrets on disk are their owner's alone, and nothing that is logged tells them."""

from __future__ import annotations

import json
import logging
import stat
from typing import TYPE_CHECKING

import pytest

from tempa.core.accounts import is_key_text
from tempa.wiring.credentials import load_credentials, write_private
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
