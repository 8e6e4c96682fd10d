"""The two ways in which a server is wired, for stories that hold on both."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tempa.testing.server import Fleet, Server
from tests.services import fresh_database

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.testing.postgres import PostgresCluster

WORKERS = 2  # of a distributed server
# What a server needs on its path for the trial engine; whatever is on ours already stays on it.
PLUGINS = os.pathsep.join(
    [str(Path(__file__).parent / "plugins"), *filter(None, [os.environ.get("PYTHONPATH")])]
)


@dataclass(frozen=True)
class Wiring:
    """Makes servers: one process on SQLite, or several on PostgreSQL."""

    cluster: PostgresCluster | None
    template: str

    @property
    def distributed(self) -> bool:
        """Whether a server is several processes."""
        return self.cluster is not None

    def slots(self, total: int) -> dict[str, str]:
        """The setting that makes `total` slots, over all of a server's workers."""
        each = total // WORKERS if self.distributed else total
        return {"TEMPA_WORKER__SLOTS": str(each)}

    def server(self, data_dir: Path, environment: Mapping[str, str] | None = None) -> Server | Fleet:
        """A server that is not started yet."""
        if self.cluster is None:
            return Server(data_dir, environment or {})
        return Fleet(data_dir, fresh_database(self.cluster, self.template), environment or {})
