"""A picture of what an attempt is making, for whoever watches: shown while it runs, kept by nobody.

An engine writes it into its folder as `FILE`, replaced as a whole each time, and tells of progress.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tempa.jobs import inputs

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.jobs.ports import ArtifactStore

_logger = logging.getLogger(__name__)

FILE = "live-preview.png"
MEDIA_TYPE = "image/png"


def key(job_id: str) -> str:
    """Where it lies while the job runs: beside what the job was given, with which it goes at the latest."""
    return inputs.key(job_id, FILE)


@dataclass
class LivePreview:
    """Brings one attempt's picture to where it is shown, each time it is another."""

    artifacts: ArtifactStore
    job_id: str
    folder: Path | None = None  # the attempt's; None: it has not begun
    _shown: int = field(default=0, init=False)

    async def show(self) -> None:
        """Show it, if it is another than before. What cannot be shown costs a look, never the job."""
        if self.folder is None:
            return
        try:
            self._shown = await self.artifacts.show(key(self.job_id), self.folder / FILE, self._shown)
        except OSError as error:
            _logger.warning("no live preview: %s", error.strerror, extra={"job_id": self.job_id})

    async def end(self) -> None:
        """Take it away."""
        if not self._shown:
            return
        try:
            await self.artifacts.delete(key(self.job_id))
        except OSError as error:
            _logger.warning("a live preview stays: %s", error.strerror, extra={"job_id": self.job_id})
