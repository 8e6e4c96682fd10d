"""The JavaScript verifier: the same verdict as Python's on every delivery, reason by reason."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import typing
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from typer.testing import CliRunner

from tempa.cli.main import app
from tempa.core.signing import hex_signature
from tempa.webhooks import WebhookVerificationError, verify
from tempa.webhooks.verifier import Reason
from tests.docs.test_webhook_signatures import VECTORS
from tests.integration.clients.conftest import HERE, PATIENCE_SECONDS, VERIFIER
from tests.integration.clients.deliveries import (
    ID,
    NOW,
    PRIVATE,
    PUBLIC,
    SHARED,
    Delivery,
    deliveries,
    delivery,
    event_body,
    forged_by_public_key,
    with_header,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.docs.test_webhook_signatures import VECTORS
from tests.integration.clients.conftest import Judge

README = VERIFIER.with_name("README.md")

pytestmark = pytest.mark.allowed_skip("Node is no part of what Tempa needs")


def in_python(one: Delivery) -> dict[str, Any]:
    try:
        event = verify(
            one.body,
            one.headers,
            one.secrets,
            one.tolerance_seconds,
            one.now,
            allow_unsigned_timestamp=one.allow_unsigned_timestamp,
        )
    except WebhookVerificationError as error:
        return {"reason": error.reason}
    return {"event": event}


def in_javascript(judge: Judge, one: Delivery) -> dict[str, Any]:
    return judge.verdict(
        one.body,
        one.headers,
        one.secrets,
        toleranceSeconds=one.tolerance_seconds,
        now=one.now,
        allowUnsignedTimestamp=one.allow_unsigned_timestamp,
    )


TRUE = delivery()
BY_KEY = delivery(signers=(PRIVATE[0], SHARED[1]))
HOSTILE = {
    "true": (TRUE, None),
    "by key": (BY_KEY, None),
    "by the key's companion": (Delivery(BY_KEY.body, BY_KEY.headers, [SHARED[1]]), None),
    "one secret of several": (Delivery(TRUE.body, TRUE.headers, [PUBLIC[1], SHARED[2], SHARED[0]]), None),
    "another secret": (Delivery(TRUE.body, TRUE.headers, [SHARED[1]]), "no_match"),
    "another key": (Delivery(BY_KEY.body, BY_KEY.headers, [PUBLIC[1]]), "no_match"),
    "altered": (Delivery(TRUE.body + b" ", TRUE.headers, TRUE.secrets), "no_match"),
    "late": (delivery(at=NOW - 301), "timestamp_too_old"),
    "early": (delivery(at=NOW + 301), "timestamp_too_new"),
    "no id": (with_header(TRUE, "webhook-id", None), "missing_header"),
    "empty signature": (with_header(TRUE, "webhook-signature", " "), "malformed_header"),
    "time is no number": (with_header(TRUE, "webhook-timestamp", "soon"), "malformed_header"),
    "a private key to check with": (Delivery(TRUE.body, TRUE.headers, [PRIVATE[0]]), "invalid_secret"),
    "no secret at all": (Delivery(TRUE.body, TRUE.headers, []), "invalid_secret"),
    "a key too short": (Delivery(TRUE.body, TRUE.headers, ["whpk_AAAA"]), "invalid_secret"),
    "signed, but another event": (delivery(b'{"id":"evt_other"}'), "id_mismatch"),
    "signed, but no JSON": (delivery(event_body()[:-1]), "invalid_body"),
    "signed, with a mark of byte order": (delivery(b"\xef\xbb\xbf" + event_body()), "invalid_body"),
    "signed, but not UTF-8": (delivery(b'{"id":"\xff"}'), "invalid_body"),
    "HMAC with a public key": (forged_by_public_key(PUBLIC[0], event_body()), "no_match"),
    "a signature of HMAC under v1a": (
        with_header(TRUE, "webhook-signature", TRUE.headers["webhook-signature"].replace("v1", "v1a")),
        "no_match",
    ),
    "a signature of Ed25519 under v1": (
        with_header(BY_KEY, "webhook-signature", BY_KEY.headers["webhook-signature"].replace("v1a", "v1")),
        "no_match",
    ),
    "hex by a public key's text": (
        Delivery(
            event_body(),
            {"X-Webhook-Signature": hex_signature(PUBLIC[0], event_body())},
            [PUBLIC[0]],
            allow_unsigned_timestamp=True,
        ),
        "no_match",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_both_know_the_true_from_the_forged(judge: Judge, name: str) -> None:
    one, reason = HOSTILE[name]
    expected = {"event": json.loads(one.body)} if reason is None else {"reason": reason}

    assert in_python(one) == expected
    assert in_javascript(judge, one) == expected


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_the_published_vectors_hold_in_javascript(judge: Judge, vector: dict[str, Any]) -> None:
    verdict = judge.verdict(vector["body"].encode(), vector["headers"], vector["secrets"], now=vector["now"])

    ok = vector["verdict"] == "ok"
    assert verdict == ({"event": json.loads(vector["body"])} if ok else {"reason": vector["verdict"]})


def test_every_reason_is_among_them() -> None:
    assert {reason for _, reason in HOSTILE.values()} == {None, *typing.get_args(Reason)}


def test_both_come_to_the_same_verdict_on_whatever_comes(judge: Judge) -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=600, suppress_health_check=list(HealthCheck))
    @given(deliveries())
    def agree(one: Delivery) -> None:
        expected = in_python(one)
        assert in_javascript(judge, one) == expected, ascii(one)
        seen[expected.get("reason", "event")] += 1

    agree()
    assert seen["event"], f"nothing true was among them: {seen}"
    assert len(seen) >= 6, f"hardly any reason was met: {seen}"


def test_it_takes_what_javascript_programs_have(node: str) -> None:
    given = {
        "body": base64.b64encode(TRUE.body).decode(),
        "headers": TRUE.headers,
        "secrets": TRUE.secrets,
        "options": {"now": NOW},
    }
    command = [node, "--no-warnings", str(HERE / "inputs.mjs"), str(VERIFIER), json.dumps(given)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)

    assert (ended.returncode, ended.stdout) == (0, "as expected\n"), ended.stderr


def test_it_is_one_file_without_dependencies() -> None:
    source = VERIFIER.read_text()

    assert "require(" not in source
    assert [line for line in source.splitlines() if line.startswith("import ")] == []
    assert source.count("import(") == source.count('import("node:crypto")') == 1
    assert ID not in source


def test_the_example_for_node_gets_an_a_from_the_doctor(node: str, tmp_path: Path) -> None:
    (source,) = re.findall(r"^## Node\n\n```js\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    tells_port = '.listen(0, "127.0.0.1", function () { console.log(this.address().port); });'
    (tmp_path / "server.mjs").write_text(source.replace(".listen(8080);", tells_port))
    shutil.copy(VERIFIER, tmp_path)
    command = [node, "--no-warnings", str(tmp_path / "server.mjs")]
    environment = {**os.environ, "TEMPA_WEBHOOK_SECRET": SHARED[0]}

    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        arguments = ["webhooks", "doctor", f"http://127.0.0.1:{port}/", "--secret", SHARED[0]]
        result = CliRunner().invoke(app, arguments)
        server.kill()

    assert (result.exit_code, json.loads(result.stdout)["grade"]) == (0, "A"), result.stdout
