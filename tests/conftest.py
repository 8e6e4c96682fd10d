"""The laws of the test house: in CI a skip is a failure, and unit tests open no sockets."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import hypothesis
import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

# The suites and stand-ins of the product show their values when they fail, as tests do.
pytest.register_assert_rewrite("tempa.testing")

# Machines are shared: how long one example takes says nothing, and a slow moment is no failure.
hypothesis.settings.register_profile(
    "tempa", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("tempa")

pytest_plugins = ["tests.services"]

UNIT_TESTS = Path(__file__).parent / "unit"


def _in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in {"", "0", "false"}


def _fail_instead(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"{reason} - but in CI a skip is a failure; see the marker `allowed_skip`"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    expected = hasattr(report, "wasxfail") or item.get_closest_marker("allowed_skip") is not None
    if report.skipped and _in_ci() and not expected:
        _fail_instead(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped and _in_ci():  # a module that skipped itself hides all its tests
        _fail_instead(report)
    return report


@pytest.fixture(autouse=True)
def _no_sockets_in_unit_tests(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        pytest.fail("a unit test opens no sockets; move it to tests/integration, or give it a fake")

    if UNIT_TESTS in request.node.path.parents:
        for name in ("connect", "connect_ex", "listen"):  # not bind: urllib3 tries for IPv6 as it is imported
            monkeypatch.setattr(socket.socket, name, refuse)
        monkeypatch.setattr(socket, "getaddrinfo", refuse)
