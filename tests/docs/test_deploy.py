"""What is handed to operators speaks of metrics that there are, and of settings that load."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tempa.core.metrics import METRICS
from tempa.wiring.settings import load_settings

DEPLOY = Path(__file__).parents[2] / "deploy"
_SERIES = re.compile(r"tempa_[a-z_]+")
_SUFFIX = re.compile(r"_(bucket|count|sum)$")


def _unknown(text: str) -> set[str]:
    names = {name if name in METRICS else _SUFFIX.sub("", name) for name in _SERIES.findall(text)}
    return names - METRICS.keys()


def test_alerts_and_dashboard_name_metrics_that_there_are() -> None:
    panels = json.loads((DEPLOY / "dashboard.json").read_text())["panels"]
    asked = " ".join(target["expr"] for panel in panels for target in panel["targets"])
    assert _unknown(asked) == set()
    expressions = " ".join(
        re.findall(r"(?:expr: .*|^ {10}\S.*)", (DEPLOY / "alerts.yml").read_text(), re.MULTILINE)
    )
    assert _unknown(expressions) == set()
    assert len(set(_SERIES.findall(expressions))) >= 6


def test_each_alert_says_what_to_do() -> None:
    rules = (DEPLOY / "alerts.yml").read_text().split("- alert: ")[1:]
    assert len(rules) >= 7
    for rule in rules:
        assert "summary:" in rule, rule
        assert "action:" in rule, rule
        assert "severity:" in rule, rule


def test_the_units_settings_load() -> None:
    unit = (DEPLOY / "tempa.service").read_text()
    environment = dict(re.findall(r"^Environment=(\w+)=(.*)$", unit, re.MULTILINE))
    assert load_settings(environment=environment).server.public_url == "https://tempa.example.com"
    assert "KillMode=mixed" in unit
