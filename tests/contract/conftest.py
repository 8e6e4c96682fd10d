"""Failures in the suites show their values, as in any other test."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tempa.testing.contracts")
