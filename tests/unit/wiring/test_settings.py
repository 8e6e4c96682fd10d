"""Layers of settings: later ones win, each says where it came from, all faults are told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tempa.cli import webhooks
from tempa.client.discovery import KEY_VARIABLE, URL_VARIABLE
from tempa.wiring.environment import READ_ELSEWHERE
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
                "TEMPA_ENGINES__NOPE__ENABLED": "1",
                "TEMPA_SERVER_PORT": "1",
            }
        )
    lines = str(caught.value).splitlines()
    assert {line.partition(":")[0] for line in lines} == {
        "server.port",
        "webhooks.allow_networks.0",
        "jobs.colour",
        "nonsense",
        "store.url",
        "engines.nope",
        "TEMPA_SERVER_PORT",
    }
    assert all("[from TEMPA_" in line or "[from the environment]" in line for line in lines)


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


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("TEMPA_SERVER_PORT", "TEMPA_SERVER__PORT"),  # one underscore
        ("TEMPA_JOBS__LEASE_SECOND", "TEMPA_JOBS__LEASE_SECONDS"),
        ("TEMPA_SEVER__PORT", "TEMPA_SERVER__PORT"),
        (
            "TEMPA_ENGINES__OPENCASCADE_BREP__TIMEOUT",
            "TEMPA_ENGINES__OPENCASCADE_BREP__TIMEOUT_SECONDS",
        ),
    ],
)
def test_a_variable_that_sets_nothing_is_refused_with_what_was_meant(variable: str, meant: str) -> None:
    with pytest.raises(SettingsError, match=rf"is no setting; did you mean {meant}\? \[from"):
        load_settings(environment={variable: "1"})


def test_what_comes_near_nothing_is_sent_to_the_list() -> None:
    with pytest.raises(SettingsError, match=r"TEMPA_XYZZY: is no setting; tempa\.default\.toml has all"):
        load_settings(environment={"TEMPA_XYZZY": "1"})


def test_variables_that_others_read_are_left_to_them() -> None:
    (option,) = vars(webhooks)["Secrets"].__metadata__

    assert {URL_VARIABLE, KEY_VARIABLE, option.envvar} == READ_ELSEWHERE
    settings = load_settings(environment=dict.fromkeys(READ_ELSEWHERE, "x"))
    assert set(settings.sources.values()) == {"default"}


def test_a_key_of_a_file_that_sets_nothing_is_refused_with_what_was_meant(tmp_path: Path) -> None:
    config = tmp_path / "tempa.toml"
    config.write_text("[server]\nprt = 1\n")

    with pytest.raises(SettingsError, match=r"server\.prt: is no setting; did you mean server\.port\?"):
        load_settings(config, environment={})


def test_an_engine_that_is_not_installed_is_refused_with_those_that_are(tmp_path: Path) -> None:
    config = tmp_path / "tempa.toml"
    config.write_text("[engines.opencascade-brap]\nenabled = false\n")

    with pytest.raises(SettingsError) as caught:
        load_settings(config, environment={})

    (line,) = str(caught.value).splitlines()
    assert line.startswith("engines.opencascade-brap: there is no such engine; installed: ")
    assert "opencascade-brep" in line
    assert line.endswith(f"[from {config}]")


@pytest.mark.parametrize(("path", "good"), [("/opt/splat/bin/python", True), ("python3", False), ("", False)])
def test_an_engines_interpreter_is_named_by_its_whole_path(path: str, *, good: bool) -> None:
    environment = {"TEMPA_ENGINES__OPENCASCADE_BREP__PYTHON": path}
    if good:
        assert load_settings(environment=environment).engines["opencascade-brep"].python == path
        return
    with pytest.raises(SettingsError, match="must be an absolute path"):
        load_settings(environment=environment)
