"""Whatever a job's data say: what is rendered, signed and sent verifies elsewhere, and reads the same."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from standardwebhooks import Webhook

from tempa.core.signing import new_secret
from tempa.webhooks import verify
from tempa.webhooks.deliver import render
from tempa.webhooks.ed25519 import new_private_key, public_key_of
from tempa.webhooks.model import Message
from tempa.webhooks.signing import webhook_headers

SECRET, PRIVATE = new_secret(), new_private_key()
PUBLIC = public_key_of(PRIVATE)
AWKWARD = '\u00f8\u0000\u2028\u2029\ufeff\U0001f600e\u0301"\\/</script>\u202e\x7f\ud7ff\ue000\uffff'

TEXTS = st.text(max_size=30) | st.text(AWKWARD, max_size=12)
NUMBERS = st.integers() | st.integers(-(10**60), 10**60) | st.floats(allow_nan=False, allow_infinity=False)
DATA = st.dictionaries(
    TEXTS.filter(lambda key: key not in {"tags", "artifacts"}),
    st.recursive(
        st.none() | st.booleans() | NUMBERS | TEXTS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
        max_leaves=20,
    ),
    max_size=6,
)
TAGS = st.dictionaries(TEXTS, TEXTS, max_size=3)


class Links:
    def artifact(self, job_id: str, name: str) -> tuple[str, datetime]:
        return f"https://tempa.example/{job_id}/{name}", datetime(2026, 11, 30, tzinfo=UTC)


def check(data: dict[str, Any], tags: dict[str, str]) -> None:
    message = Message(
        id="evt_1",
        account="acc_1",
        job_id="cad_1",
        type="cad_generation.completed",
        at=datetime(2026, 11, 30, tzinfo=UTC),
        data={**data, "tags": tags},
        links={"step": ("cad_1", "model.step")},
    )
    body, now = render(message, Links()), int(time.time())
    headers = dict(webhook_headers([SECRET, PRIVATE], message.id, now, body))

    Webhook(SECRET).verify(body.decode(), headers)  # raises unless it does
    plain = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    assert headers["X-Webhook-Signature"] == plain
    artifacts = {"step": "https://tempa.example/cad_1/model.step"}
    assert verify(body, headers, PUBLIC)["data"] == {**data, "tags": tags, "artifacts": artifacts}
    assert json.loads(body)["data"] == {**data, "tags": tags, "artifacts": artifacts}


@settings(max_examples=300)
@given(DATA, TAGS)
def test_300_documents_verify_elsewhere_and_read_the_same(data: dict[str, Any], tags: dict[str, str]) -> None:
    check(data, tags)


@pytest.mark.chaos
@settings(max_examples=10_000, suppress_health_check=list(HealthCheck))
@given(DATA, TAGS)
def test_10_000_documents_verify_elsewhere_and_read_the_same(
    data: dict[str, Any], tags: dict[str, str]
) -> None:
    check(data, tags)
