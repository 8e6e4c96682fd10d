"""`tempa demo`: what a person sees in the first minute, with the real kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_demo_makes_a_part_and_splats_checks_them_and_stops_in_good_order(tmp_path: Path) -> None:
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
    for way in ("tempa.webhooks.verify", "plain HMAC", "the standardwebhooks library"):
        assert way in process.stdout
    assert list(tmp_path.glob("out/**/ready.json")) == []  # address and key of a server that is gone
    assert "tempa_sk_" not in (tmp_path / "out/server.log").read_text()
