"""What we send, judged by the official Standard Webhooks libraries of Python and JavaScript."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from tempa.core.signing import new_secret
from tempa.webhooks.ed25519 import new_private_key
from tempa.webhooks.signing import webhook_headers
from tests.integration.clients.deliveries import ID, event_body

if TYPE_CHECKING:
    from tests.integration.clients.conftest import Judge

BODIES = {
    "plain": event_body(data={"job_id": "cad_1"}),
    "unicode": event_body(data={"nama": "roda gigi ø120", "😀": "e\u0301 \u2028 \x7f \u0000"}),
    "200 kB": event_body(data={"note": "ø" * 100_000}),
    "escapes": event_body(data={"note": '\\ " / \b \f \n \r \t </script> \\u0041'}),
    "numbers": event_body(data={"big": 10**40, "small": 5e-324, "zero": -0.0}),
}


def in_python(body: bytes, headers: dict[str, str], secret: str) -> bool:
    try:
        Webhook(secret).verify(body.decode(), headers)
    except WebhookVerificationError:
        return False
    return True


@pytest.mark.parametrize("name", BODIES)
def test_python_accepts_every_secret_of_a_rotation_and_no_other(name: str) -> None:
    new, old, body = new_secret(), new_secret(), BODIES[name]
    headers = dict(webhook_headers([new, new_private_key(), old], ID, int(time.time()), body))

    assert [in_python(body, headers, secret) for secret in (new, old, new_secret())] == [True, True, False]
    assert not in_python(body + b" ", headers, new)


@pytest.mark.allowed_skip("Node is no part of what Tempa needs")
@pytest.mark.parametrize("name", BODIES)
def test_javascript_accepts_every_secret_of_a_rotation_and_no_other(official_judge: Judge, name: str) -> None:
    new, old, body = new_secret(), new_secret(), BODIES[name]
    headers = dict(webhook_headers([new, new_private_key(), old], ID, int(time.time()), body))

    for secret in (new, old):
        assert official_judge.verdict(body, headers, [secret])["event"]["id"] == ID
    assert official_judge.verdict(body, headers, [new_secret()]) == {"reason": "No matching signature found"}
    assert official_judge.verdict(body + b" ", headers, [new]) == {"reason": "No matching signature found"}
    assert json.loads(body)["id"] == ID
