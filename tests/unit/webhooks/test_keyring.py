"""Secrets at rest: sealed for one endpoint, and used only while they are in force."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempa.core.signing import new_secret
from tempa.webhooks.keyring import Keyring, SecretUnusable
from tempa.webhooks.model import SealedSecret
from tempa.webhooks.rotation import SECRETS_MAX, rotated
from tests.unit.webhooks.samples import a_claim

if TYPE_CHECKING:
    from tempa.webhooks.model import ClaimedDelivery

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
ENDPOINT, ACCOUNT = "ep_1", "default"
OWN = "whsec_" + "b3du" * 8


def a_keyring(key: bytes = b"k" * 32) -> Keyring:
    return Keyring(key, lambda account: [f"{OWN}-{account}"])


def sealed(
    keyring: Keyring, secret: str, expires_at: datetime | None = None, created_at: datetime = NOW
) -> SealedSecret:
    return SealedSecret(
        sealed=keyring.seal(secret, ENDPOINT, ACCOUNT), created_at=created_at, expires_at=expires_at
    )


def claimed(*secrets: SealedSecret) -> ClaimedDelivery:
    return a_claim(endpoint_id=ENDPOINT, secrets=secrets)


@given(st.text(min_size=1))
def test_what_was_sealed_opens_and_does_not_show(secret: str) -> None:
    keyring = a_keyring()
    text = keyring.seal(secret, ENDPOINT, ACCOUNT)
    assert keyring.unseal(text, ENDPOINT, ACCOUNT) == secret
    assert text.isascii()
    assert len(secret) < 4 or secret not in text


def test_no_two_seals_are_alike() -> None:
    keyring = a_keyring()
    assert keyring.seal(OWN, ENDPOINT, ACCOUNT) != keyring.seal(OWN, ENDPOINT, ACCOUNT)


@pytest.mark.parametrize(("endpoint", "account"), [("ep_2", ACCOUNT), (ENDPOINT, "globex")])
def test_a_row_that_is_copied_elsewhere_opens_nothing_there(endpoint: str, account: str) -> None:
    keyring = a_keyring()
    text = keyring.seal(new_secret(), ENDPOINT, ACCOUNT)
    with pytest.raises(SecretUnusable, match=endpoint):
        keyring.unseal(text, endpoint, account)


@pytest.mark.parametrize("text", ["", "1:", "1:AAAA", "1:" + "A" * 80, "nonsense ø", "2:AAAA"])
def test_what_we_did_not_seal_is_told_in_words(text: str) -> None:
    with pytest.raises(SecretUnusable, match=r"credentials\.json"):
        a_keyring().unseal(text, ENDPOINT, ACCOUNT)


def test_under_another_master_key_nothing_opens() -> None:
    text = a_keyring().seal(OWN, ENDPOINT, ACCOUNT)
    with pytest.raises(SecretUnusable) as raised:
        a_keyring(b"o" * 32).unseal(text, ENDPOINT, ACCOUNT)
    assert OWN not in str(raised.value)


def test_a_registered_endpoints_own_secrets_sign_newest_first() -> None:
    keyring = a_keyring()
    newest, older = new_secret(), new_secret()
    found = keyring.in_force(claimed(sealed(keyring, newest), sealed(keyring, older, NOW + HOUR)), NOW)
    assert list(found) == [newest, older]


def test_an_expired_one_is_not_used() -> None:
    keyring = a_keyring()
    newest, older = new_secret(), new_secret()
    delivery = claimed(sealed(keyring, newest), sealed(keyring, older, NOW + HOUR))
    just_before, at = NOW + HOUR - timedelta(milliseconds=1), NOW + HOUR
    assert list(keyring.in_force(delivery, just_before)) == [newest, older]
    assert list(keyring.in_force(delivery, at)) == [newest]


def test_with_none_in_force_nothing_is_signed_not_even_with_the_accounts() -> None:
    keyring = a_keyring()
    with pytest.raises(SecretUnusable):
        keyring.in_force(claimed(sealed(keyring, new_secret(), NOW)), NOW)


def test_a_jobs_url_is_signed_with_the_accounts_own() -> None:
    assert list(a_keyring().in_force(a_claim(endpoint_id="ep_9"), NOW)) == [f"{OWN}-default"]


def a_stored(name: str, expires_at: datetime | None = None) -> SealedSecret:
    return SealedSecret(sealed=name, created_at=NOW, expires_at=expires_at)


def names(secrets: tuple[SealedSecret, ...]) -> list[tuple[str, datetime | None]]:
    return [(secret.sealed, secret.expires_at) for secret in secrets]


def test_a_rotation_lets_the_older_ones_live_to_the_end_of_the_overlap() -> None:
    before = (a_stored("b"), a_stored("a", NOW + HOUR / 2), a_stored("past", NOW))
    assert names(rotated(before, a_stored("c"), 3600, NOW)) == [
        ("c", None),
        ("b", NOW + HOUR),
        ("a", NOW + HOUR / 2),
    ]


def test_a_rotation_without_overlap_ends_all_others() -> None:
    before = (a_stored("b"), a_stored("a", NOW + HOUR))
    assert names(rotated(before, a_stored("c"), 0, NOW)) == [("c", None)]


def test_of_many_rotations_the_newest_stay() -> None:
    secrets: tuple[SealedSecret, ...] = ()
    for number in range(SECRETS_MAX + 3):
        secrets = rotated(secrets, a_stored(str(number)), 3600, NOW)
    assert [name for name, _ in names(secrets)] == ["7", "6", "5", "4", "3"]
