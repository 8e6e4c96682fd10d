"""A data directory that several processes share has one set of credentials, whoever makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.core.accounts import new_secret_key
from tempa.wiring import credentials
from tempa.wiring.credentials import load_credentials

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tempa.wiring.credentials import Credentials


def test_of_two_that_start_at_once_both_have_what_the_quicker_one_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quicker: list[Credentials] = []

    def late() -> str:
        """The file was not there yet; before ours is, another process has written its own."""
        monkeypatch.undo()
        quicker.append(load_credentials(tmp_path))
        return new_secret_key()

    monkeypatch.setattr(credentials, "new_secret_key", late)

    assert [load_credentials(tmp_path)] == quicker
    assert [load_credentials(tmp_path)] == quicker
    assert [path.name for path in tmp_path.iterdir()] == ["credentials.json"]
