"""The treasury's key: of which file it is taken, and what is said of one that is not."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest
from solders.keypair import Keypair

from tempa.adapters.payments.keypair import KeypairSigner
from tempa.wiring.chain import open_signer
from tempa.wiring.settings import SettingsError, load_settings

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.wiring.settings import Settings

PAIR = Keypair()


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "treasury.json"
    path.touch(0o600)
    path.write_text(PAIR.to_json())
    return path


def settings(path: object, wallet: Keypair = PAIR) -> Settings:
    environment = {
        "TEMPA_SOLANA__RPC_URLS": '["http://127.0.0.1:8899"]',
        "TEMPA_SOLANA__TREASURY": str(wallet.pubkey()),
        "TEMPA_PAYMENTS__REFUND_KEYPAIR": str(path),
    }
    return load_settings(environment=environment)


def refused(path: object, wallet: Keypair = PAIR) -> str:
    with pytest.raises(SettingsError) as refusal:
        open_signer(settings(path, wallet), [])
    return str(refusal.value)


def test_there_is_none_by_default() -> None:
    assert open_signer(settings(""), []) is None


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_the_treasurys_own_key_is_taken_and_never_shown(key: Path, mode: int) -> None:
    key.chmod(mode)

    signer = open_signer(settings(key), [])

    assert isinstance(signer, KeypairSigner)
    assert repr(signer) == f"KeypairSigner({PAIR.pubkey()})"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o602, 0o700])
def test_what_others_may_read_or_write_is_refused(key: Path, mode: int) -> None:
    key.chmod(mode)

    words = refused(key)

    assert f"payments.refund_keypair: {key}: its mode is {mode:04o}" in words
    assert "chmod 600" in words


def test_another_wallets_key_is_refused(key: Path) -> None:
    other = Keypair()

    words = refused(key, other)

    assert f"it holds the key of {PAIR.pubkey()}, and the treasury's wallet is {other.pubkey()}" in words


MIXED = [*bytes(PAIR)[:32], *bytes(Keypair())[32:]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no JSON array of 64 bytes"),
        ("[1, 2", "no JSON array of 64 bytes"),
        ("[" * 4096, "no JSON array of 64 bytes"),
        (str(PAIR), "no JSON array of 64 bytes"),
        (json.dumps(list(bytes(PAIR))[:32]), "no JSON array of 64 bytes"),
        (json.dumps([*bytes(PAIR)[:63], 256]), "no JSON array of 64 bytes"),
        (json.dumps([*bytes(PAIR)[:63], True]), "no JSON array of 64 bytes"),
        (json.dumps([*bytes(PAIR)[:63], 1.0]), "no JSON array of 64 bytes"),
        (json.dumps(MIXED), "its public key is not that of its secret one"),
    ],
)
def test_what_is_no_key_is_refused_in_words_that_tell_nothing_of_it(
    key: Path, content: str, words: str
) -> None:
    key.write_text(content)

    said = refused(key)

    assert words in said
    assert not content or content not in said


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in refused(tmp_path / "none.json")
    assert "it is no file" in refused(tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    assert "it is no file" in refused(pipe)  # and does not wait for who writes


def test_a_path_has_to_be_absolute() -> None:
    with pytest.raises(SettingsError, match=r"payments\.refund_keypair"):
        settings("treasury.json")


def test_without_solders_it_says_what_to_install(key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone: dict[str, Any] = {"solders.keypair": None}
    monkeypatch.delitem(sys.modules, "tempa.adapters.payments.keypair")
    for name, module in gone.items():
        monkeypatch.setitem(sys.modules, name, module)

    assert "pip install 'tempa[solana]'" in refused(key)
