"""`tempa demo`: what a person sees in the first minute, with the real kernel and a real chain."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_demo_makes_a_part_and_splats_rents_a_gpu_and_stops_in_good_order(tmp_path: Path) -> None:
    inherited = os.environ.get("PYTHONPATH", "")
    process = subprocess.run(
        [sys.executable, "-m", "tempa", "demo", "-o", str(tmp_path / "out")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), inherited])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert process.returncode == 0, process.stdout + process.stderr
    assert "✗" not in process.stdout
    assert (tmp_path / "out/model.step").read_bytes().startswith(b"ISO-10303-21;")
    event = json.loads((tmp_path / "out/webhook.json").read_bytes())
    assert event["type"] == "cad_generation.completed"
    assert event["data"]["job_id"] in process.stdout
    assert (tmp_path / "out/model.ply").read_bytes().startswith(b"ply\n")
    assert (tmp_path / "out/model.spz").read_bytes().startswith(b"\x1f\x8b")
    assert (tmp_path / "out/preview.png").read_bytes().startswith(b"\x89PNG")
    event = json.loads((tmp_path / "out/splat-webhook.json").read_bytes())
    assert event["type"] == "3d_reconstruction.completed"
    assert event["data"]["job_id"] in process.stdout
    assert event["data"]["artifacts"].keys() >= {"gaussian_ply", "rendered_preview", "spz"}
    _rented(tmp_path / "out", process.stdout)
    for way in ("tempa.webhooks.verify", "plain HMAC", "the standardwebhooks library"):
        assert way in process.stdout
    assert list(tmp_path.glob("out/**/ready.json")) == []  # address and key of a server that is gone
    assert "tempa_sk_" not in (tmp_path / "out/server.log").read_text()


def _rented(out: Path, told: str) -> None:
    """The job waited for the payment, which bought an hour once, and can be proved with other tools."""
    event = json.loads((out / "rental-webhook.json").read_bytes())
    proof = json.loads((out / "proof.json").read_bytes())
    evidence = proof["evidence"][0]

    assert told.index("402 rental-required") < told.index("Credited") < told.index("the same request: 202")
    assert (event["type"], event["data"]["seconds"]) == ("gpu_rental.credited", 3600)
    assert proof["signature"] == event["data"]["signature"]
    assert hashlib.sha256(evidence["answer"].encode()).hexdigest() == evidence["sha256"]
    assert json.loads(evidence["answer"])["transaction"]["signatures"] == [proof["signature"]]
    assert "told of in 2 calls" in told
