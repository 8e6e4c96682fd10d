"""`tempa doctor` shows where the database is, and never the way in."""

from __future__ import annotations

import json

import pytest

from tempa.cli.doctor import effective
from tempa.wiring.settings import URL_SETTINGS, load_settings

MASKED = {
    "postgresql://tempa:s3cret@db:5432/tempa": "postgresql://tempa:********@db:5432/tempa",
    "postgres://:s3cret@db/tempa": "postgres://:********@db/tempa",
    "postgresql://tempa:s3cret%2F%40@db/tempa?sslmode=require": (
        "postgresql://tempa:********@db/tempa?sslmode=require"
    ),
    "postgresql://db/tempa?user=tempa&password=s3cret&sslmode=require": (
        "postgresql://db/tempa?user=tempa&password=********&sslmode=require"
    ),
    "postgresql://db/tempa?password=s3cret": "postgresql://db/tempa?password=********",
    "postgresql://tempa:s3cret@/tempa?host=/run&password=s3cret": (
        "postgresql://tempa:********@/tempa?host=/run&password=********"
    ),
    # What somebody who looks for a fault has: a password that is not escaped as it should be.
    "postgresql://tempa:s3cret@s3cret@db/tempa": "postgresql://tempa:********@db/tempa",
    "postgresql://tempa:s3cret/s3cret@db/tempa": "postgresql://tempa:********@db/tempa",
    "postgresql://db/tempa?pass%77ord=s3cret&sslpassword=s3cret": (
        "postgresql://db/tempa?pass%77ord=********&sslpassword=********"
    ),
}
PLAIN = (
    "postgresql://db:5432/tempa",
    "postgresql://tempa@db:5432/tempa",
    "postgresql://tempa@/tempa?host=/run/postgresql&port=5432",
)


@pytest.mark.parametrize("name", sorted(name for name in URL_SETTINGS if name.startswith("store.")))
@pytest.mark.parametrize(("url", "shown"), MASKED.items())
def test_passwords_in_urls_are_masked_and_the_rest_is_shown(name: str, url: str, shown: str) -> None:
    settings = effective(load_settings(None, {}, {f"TEMPA_{name.upper().replace('.', '__')}": url}))

    assert settings[name]["value"] == shown
    assert "s3cret" not in json.dumps(settings)


@pytest.mark.parametrize("url", PLAIN)
def test_a_url_without_a_password_is_shown_as_it_is(url: str) -> None:
    settings = effective(load_settings(None, {}, {"TEMPA_STORE__URL": url}))

    assert settings["store.url"]["value"] == url
