"""How the demo speaks, and how it ends where something does not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.cli.exits import CommandFault

if TYPE_CHECKING:
    from rich.console import Console


def expect(holds: bool, words: str) -> None:
    """End with `words`, which say what was found instead, unless it holds. Raises CommandFault."""
    if not holds:
        raise CommandFault(f"This does not hold: {words}.")


def tell(console: Console, what: str, words: str) -> None:
    """Something that was done and checked."""
    show(console, ("✓ ", "green"), (f"{what:10} ", "bold"), words)


def show(console: Console, *parts: str | tuple[str, str]) -> None:
    """Text with its styles beside it: what a server says is never read as markup."""
    from rich.text import Text

    console.print(Text.assemble(*parts), soft_wrap=True)
