"""Settings of the chain and of payments: nested names, lists of mints, amounts, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tempa.cli.doctor import effective
from tempa.wiring.settings import SettingsError, load_settings

if TYPE_CHECKING:
    from pathlib import Path

WALLET = "H1qYLMXxXkx9Ei3R97A25zLdyP2AX9y1cxcdWLwtZn2a"
MINT = "9n4LE7XYy74L2MWLoUnFxKZ2TQs3ckGDyq81h3FQEpQZ"
PAID = {"TEMPA_SOLANA__RPC_URLS": '["http://127.0.0.1:8899"]', "TEMPA_SOLANA__TREASURY": WALLET}


def refused(environment: dict[str, str]) -> str:
    with pytest.raises(SettingsError) as refusal:
        load_settings(environment=environment)
    return str(refusal.value)


def test_nothing_can_be_paid_until_it_is_said_to_whom_and_who_is_asked() -> None:
    assert not load_settings(environment={}).solana.is_configured
    assert load_settings(environment=PAID).solana.is_configured
    assert "solana.rpc_urls" in refused({"TEMPA_SOLANA__TREASURY": WALLET})


def test_secrets_from_the_environment_and_from_a_file(tmp_path: Path) -> None:
    config = tmp_path / "tempa.toml"
    config.write_text('[payments.helius]\nsecret = "old"\n[payments]\ngrace_seconds = 60\n')
    settings = load_settings(config, environment={"TEMPA_PAYMENTS__HELIUS__SECRET": "new"})

    assert settings.payments.secrets_of("helius") == ("new",)
    assert settings.payments.grace_seconds == 60
    assert settings.sources["payments.helius.secret"] == "TEMPA_PAYMENTS__HELIUS__SECRET"
    rotated = load_settings(config, environment={"TEMPA_PAYMENTS__HELIUS__PREVIOUS_SECRET": "older"})
    assert rotated.payments.secrets_of("helius") == ("old", "older")
    assert rotated.payments.secrets_of("generic") == ()


def test_mints_are_addresses_or_tables(tmp_path: Path) -> None:
    config = tmp_path / "tempa.toml"
    config.write_text(f'[[solana.mints]]\nmint = "{MINT}"\nprogram = "token-2022"\ndust = 5\n')
    for settings in (
        load_settings(config, environment={}),
        load_settings(environment={"TEMPA_SOLANA__MINTS": f'["{MINT}"]'}),
    ):
        assert [mint.mint for mint in settings.solana.mints] == [MINT]
    assert load_settings(config, environment={}).solana.mints[0].program == "token-2022"


def test_amounts_beyond_what_toml_can_say_are_taken_as_text() -> None:
    settings = load_settings(environment={"TEMPA_SOLANA__QUORUM_ABOVE": f'{{"SOL": "{2**64 - 1}"}}'})

    assert settings.solana.quorum_above == {"SOL": 2**64 - 1}


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("TEMPA_SOLANA__TREASURY", "me", "base58 of 32 bytes"),
        ("TEMPA_SOLANA__MINTS", '["usdc"]', "base58 of 32 bytes"),
        ("TEMPA_SOLANA__MINTS", f'["{MINT}", "{MINT}"]', "twice"),
        ("TEMPA_SOLANA__RPC_URLS", '["http://a", "http://a"]', "count twice"),
        ("TEMPA_SOLANA__RPC_URLS", '["a"]', "pattern"),
        ("TEMPA_SOLANA__COMMITMENT", "processed", "finalized"),
        ("TEMPA_SOLANA__QUORUM_ABOVE", f'{{"SOL": "{2**64}"}}', "18446744073709551615"),
        ("TEMPA_PAYMENTS__GUARD_URL", "http://a", "redis"),
        ("TEMPA_PAYMENTS__GENERIC__SECRET", "whsec_???", "base64"),
        ("TEMPA_PAYMENTS__HELIUS__SECRT", "a", "did you mean TEMPA_PAYMENTS__HELIUS__SECRET"),
        ("TEMPA_PAYMENTS__PAYPAL__SECRET", "a", "is no setting"),
    ],
)
def test_what_is_wrong_is_said(variable: str, value: str, says: str) -> None:
    told = refused({variable: value})

    assert says in told
    assert variable in told


def test_a_doctor_shows_neither_secrets_nor_keys_in_urls() -> None:
    shown = effective(
        load_settings(
            environment={
                "TEMPA_PAYMENTS__HELIUS__SECRET": "hush",
                "TEMPA_PAYMENTS__GUARD_URL": "redis://u:hush@cache:6379/0",
                "TEMPA_SOLANA__RPC_URLS": '["https://node.example/?api-key=hush", "http://127.0.0.1:8899/"]',
                "TEMPA_SOLANA__WS_URL": "wss://hush@node.example/v2/hush",
            }
        )
    )

    assert "hush" not in str(shown)
    assert shown["solana.rpc_urls"]["value"] == ["https://node.example/********", "http://127.0.0.1:8899/"]
    assert shown["solana.ws_url"]["value"] == "wss://node.example/********"
    assert shown["payments.quicknode.secret"]["value"] == ""
