"""How attempts end, and what a rescuer makes of those that were lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tempa.jobs.model import Canceled, Failed, Released, Retried
from tempa.testing.contracts.samples import BAD_FILLET, COMPLETED, WORKER_LOST

if TYPE_CHECKING:
    from tempa.jobs.model import Ending

ENDINGS: tuple[Ending, ...] = (
    COMPLETED,
    Failed(error=BAD_FILLET),
    Retried(error=WORKER_LOST, delay_seconds=0.0, crash=True),
    Retried(error=WORKER_LOST, delay_seconds=7.0, crash=False),
    Canceled(),
    Released(),
)
ANY_ENDING = st.sampled_from(ENDINGS) | st.just(COMPLETED)
TAKEOVERS: tuple[Ending, ...] = (ENDINGS[2], Failed(error=WORKER_LOST))
