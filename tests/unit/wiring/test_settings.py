"""Layers of settings: later ones win, each says where it came from, all faults are told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tempa.wiring.settings import SettingsError, load_settings


def test_the_default_file_is_complete_and_valid() -> None:
    settings = load_settings(environment={})
    assert settings.webhooks.max_retries == 5
    assert settings.jobs.lease_seconds == 30
    assert set(settings.sources.values()) == {"default"}


def test_file_then_environment_then_flags(tmp_path: Path) -> None:
    config = tmp_path / "tempa.toml"
    config.write_text("[server]\nport = 1\nhost = '::'\n[jobs]\nbeat_seconds = 2\n")
    settings = load_settings(
        config, {"server.port": 3}, {"TEMPA_SERVER__PORT": "2", "TEMPA_JOBS__BEAT_SECONDS": "3"}
    )
    assert (settings.server.port, settings.server.host, settings.jobs.beat_seconds) == (3, "::", 3)
    assert settings.sources["server.port"] == "flag"
    assert settings.sources["server.host"] == str(config)
    assert settings.sources["jobs.beat_seconds"] == "TEMPA_JOBS__BEAT_SECONDS"


def test_lists_come_as_json_and_an_engines_hyphens_as_underscores() -> None:
    settings = load_settings(
        environment={
            "TEMPA_WEBHOOKS__ALLOW_NETWORKS": '["10.0.0.0/8"]',
            "TEMPA_ENGINES__OPENCASCADE_BREP__TIMEOUT_SECONDS": "7.5",
            "TEMPA_URL": "http://not-a-setting",
        }
    )
    assert settings.webhooks.allow_networks == ("10.0.0.0/8",)
    assert settings.engines["opencascade-brep"].timeout_seconds == 7.5


def test_every_fault_is_told_with_where_it_came_from() -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(
            environment={
                "TEMPA_SERVER__PORT": "many",
                "TEMPA_WEBHOOKS__ALLOW_NETWORKS": '["10.0.0.0/99"]',
                "TEMPA_JOBS__COLOUR": "red",
                "TEMPA_NONSENSE__A": "1",
                "TEMPA_STORE__URL": "mysql://x",
            }
        )
    lines = str(caught.value).splitlines()
    assert {line.partition(":")[0] for line in lines} == {
        "server.port",
        "webhooks.allow_networks.0",
        "jobs.colour",
        "nonsense",
        "store.url",
    }
    assert all("[from TEMPA_" in line for line in lines)


def test_a_beat_that_could_lose_the_lease_is_refused() -> None:
    with pytest.raises(SettingsError, match="at most half"):
        load_settings(flags={"jobs.lease_seconds": 5, "jobs.beat_seconds": 4}, environment={})


@pytest.mark.parametrize("text", ["[server", "port = ", "\x00"])
def test_a_file_that_is_no_toml_is_named(tmp_path: Path, text: str) -> None:
    config = tmp_path / "broken.toml"
    config.write_text(text)
    with pytest.raises(SettingsError, match=r"broken\.toml"):
        load_settings(config, environment={})
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings(tmp_path / "missing.toml", environment={})
