"""A disk that fails under an engine says nothing about the job, which is tried again."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest

from tempa.jobs.ports import Broke


async def test_a_full_disk_has_a_code_of_its_own(run: Any) -> None:
    outcome = await run("fill", module="failing_disk")
    assert isinstance(outcome, Broke)
    assert (outcome.error.code, outcome.error.retryable) == ("ARTIFACT_STORE_FAILED", True)
    assert outcome.error.detail == {"reason": "No space left on device"}


@pytest.mark.parametrize("code", [errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS])
async def test_so_has_one_that_is_over_its_quota_or_broken(run: Any, code: int) -> None:
    outcome = await run("raise", module="failing_disk", errno=code)
    assert isinstance(outcome, Broke)
    assert outcome.error.code == "ARTIFACT_STORE_FAILED"
    assert outcome.error.detail == {"reason": os.strerror(code)}


@pytest.mark.parametrize("code", [errno.ENOENT, errno.EACCES, errno.EMFILE])
async def test_other_errors_of_the_system_stay_faults_of_ours(run: Any, code: int) -> None:
    outcome = await run("raise", module="failing_disk", errno=code)
    assert isinstance(outcome, Broke)
    assert outcome.error.code == "INTERNAL"
