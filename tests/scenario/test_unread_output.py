"""Nobody reads what the server prints: no reason to stop serving."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx2

from tempa.testing.server import START_SECONDS

if TYPE_CHECKING:
    from pathlib import Path


def test_a_log_pipe_that_nobody_reads_does_not_stop_the_server(tmp_path: Path) -> None:
    """The pipe holds 64 KiB; these requests log several times that."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tempa", "up", "--port", "0", "--data", str(tmp_path / "data")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TEMPA_LOG__FORMAT": "json"},
    )
    assert process.stdout
    assert process.stderr
    with process, httpx2.Client(timeout=START_SECONDS, trust_env=False) as http:
        ready = httpx2.Response(200, content=process.stdout.readline()).json()
        headers = {"Authorization": f"Bearer {ready['api_key']}"}
        body = {"parameters": {"outer_diameter": 3.0, "inner_diameter": 1.0, "length": 1.0}}
        for _ in range(700):
            answer = http.post(f"{ready['url']}/v1/models/generate", json=body, headers=headers)
            assert answer.status_code in {200, 202}
        assert http.get(f"{ready['url']}/livez").status_code == 200
        process.terminate()
        assert process.wait(30) == 0
        assert len(process.stderr.read()) > 60_000  # it was full indeed
