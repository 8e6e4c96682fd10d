"""GPU instances, as far as jobs are bound to them: who rents which until when is not this slice's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.core.errors import Problem, Refusal
from tempa.jobs.model import Tenure

if TYPE_CHECKING:
    from tempa.jobs.model import Tenant

UNKNOWN_INSTANCE = Problem("/gpu_instance_id", "No GPU instance of this id is offered here.")


def unknown_instance() -> Refusal:
    """422."""
    return Refusal("invalid-request", UNKNOWN_INSTANCE.message, (UNKNOWN_INSTANCE,))


class NoInstances:
    """The `Allowance` of a server that has none to rent out."""

    async def tenure(self, tenant: Tenant) -> Tenure:  # noqa: ARG002 - the port's
        """Nobody's."""
        return Tenure.OVER

    async def refusal(self, tenant: Tenant) -> Refusal:  # noqa: ARG002 - the port's
        """422."""
        return unknown_instance()


NO_INSTANCES = NoInstances()
