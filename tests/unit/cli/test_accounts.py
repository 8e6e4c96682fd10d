"""`tempa accounts` and `tempa keys --account`: in a store of their own, without a server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Terminal

DEFAULTS = {
    "weight": 1.0,
    "running_max": None,
    "queued_max": None,
    "requests_per_second": None,
    "compute_seconds_per_day": None,
}


@pytest.fixture
def where(tmp_path: Path) -> tuple[str, str]:
    return ("--data", str(tmp_path / "data"))


def limits(document: dict[str, Any]) -> dict[str, Any]:
    return {name: document[name] for name in DEFAULTS}


def listed(tempa: Terminal, where: tuple[str, str]) -> dict[str, dict[str, Any]]:
    items = json.loads(tempa.run("accounts", "ls", *where).stdout)["items"]
    return {account["id"]: account for account in items}


def test_limits_are_set_one_by_one_and_taken_away_again(tempa: Terminal, where: tuple[str, str]) -> None:
    tempa.run("accounts", "set", "acme", "--queued-max", "100", "--weight", "2.5", *where)
    tempa.run("accounts", "set", "acme", "--requests-per-second", "0.5", "--running-max", "0", *where)
    last = tempa.run(
        "accounts", "set", "acme", "--queued-max", "default", "--compute-seconds-per-day", "3600", *where
    )

    expected = {
        "weight": 2.5,
        "running_max": 0,
        "queued_max": None,
        "requests_per_second": 0.5,
        "compute_seconds_per_day": 3600.0,
    }
    assert limits(json.loads(last.stdout)) == expected
    assert limits(listed(tempa, where)["acme"]) == expected
    assert listed(tempa, where)["acme"]["compute_seconds_today"] == 0.0


def test_an_account_comes_into_being_with_its_first_key(tempa: Terminal, where: tuple[str, str]) -> None:
    made = json.loads(tempa.run("keys", "create", "ci", "--account", "acme", *where).stdout)

    assert made["account"] == "acme"
    assert limits(listed(tempa, where)["acme"]) == DEFAULTS
    of_acme = json.loads(tempa.run("keys", "ls", "--account", "acme", *where).stdout)["items"]
    assert [key["id"] for key in of_acme] == [made["id"]]
    of_default = json.loads(tempa.run("keys", "ls", *where).stdout)["items"]
    assert made["id"] not in [key["id"] for key in of_default]


def test_a_key_is_revoked_in_its_own_account_only(tempa: Terminal, where: tuple[str, str]) -> None:
    made = json.loads(tempa.run("keys", "create", "ci", "--account", "acme", *where).stdout)

    assert tempa.run("keys", "revoke", made["id"], *where).exit_code == 1
    assert tempa.run("keys", "revoke", made["id"], "--account", "acme", *where).exit_code == 0


def test_each_account_has_a_signing_secret_of_its_own_that_stays(
    tempa: Terminal, where: tuple[str, str], tmp_path: Path
) -> None:
    made = [
        json.loads(tempa.run("keys", "create", "k", "--account", account, *where).stdout)["webhook_secret"]
        for account in ("acme", "globex", "acme", "default")
    ]
    credentials = json.loads((tmp_path / "data/credentials.json").read_text())

    assert made[0] == made[2]
    assert len(set(made)) == 3
    assert all(secret.startswith("whsec_") for secret in made)
    assert made[3] == credentials["webhook_secret"]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--queued-max", "-1"),
        ("--queued-max", "1.5"),
        ("--queued-max", "1" * 10),
        ("--running-max", "many"),
        ("--weight", "0"),
        ("--weight", "1001"),
        ("--weight", "nan"),
        ("--requests-per-second", "0"),
        ("--requests-per-second", "inf"),
        ("--requests-per-second", "1e-300"),
        ("--compute-seconds-per-day", "-0.5"),
        ("--compute-seconds-per-day", ""),
    ],
)
def test_a_value_that_is_none_is_told_with_its_option(
    tempa: Terminal, where: tuple[str, str], option: str, value: str
) -> None:
    result = tempa.run("accounts", "set", "acme", f"{option}={value}", *where)

    assert result.exit_code == 2
    assert option in result.stderr


@pytest.mark.parametrize("name", ["", " ", "-x", "a b", "ü", "a/b", "a" * 65])
def test_a_name_that_is_none_is_refused(tempa: Terminal, where: tuple[str, str], name: str) -> None:
    limited = tempa.run("accounts", "set", "--queued-max", "1", *where, "--", name)
    keyed = tempa.run("keys", "create", "k", f"--account={name}", *where)

    for result in (limited, keyed):
        assert result.exit_code == 2
        assert "no name for an account" in result.stderr


def test_to_set_nothing_is_a_mistake(tempa: Terminal, where: tuple[str, str]) -> None:
    assert tempa.run("accounts", "set", "acme", *where).exit_code == 2


def test_people_read_a_table(tempa: Terminal, where: tuple[str, str]) -> None:
    tempa.run("accounts", "set", "acme", "--queued-max", "1500000", *where)
    shown = tempa.show("accounts", "ls", *where).stdout

    assert "acme" in shown
    assert "1500000" in shown
    assert "queued max" in shown


def test_a_list_makes_no_store(tempa: Terminal, where: tuple[str, str], tmp_path: Path) -> None:
    assert tempa.run("accounts", "ls", *where).exit_code == 2
    assert not (tmp_path / "data").exists()
