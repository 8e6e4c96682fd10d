"""Roles: the long-running parts of a Tempa process, all with one life cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio


class Role(Protocol):
    """One chore. `run` returns soon after `stop` is set, with its work finished or handed back."""

    @property
    def name(self) -> str: ...
    async def run(self, stop: asyncio.Event) -> None: ...
