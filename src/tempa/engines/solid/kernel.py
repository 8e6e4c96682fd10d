"""The kernel's manners: how its failures get their codes, and how it is kept from printing."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from OCP.Message import Message

from tempa.core.errors import TempaError

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT_CHARACTERS_MAX = 2000


@contextmanager
def failing_as(code: str, **detail: Any) -> Iterator[None]:
    """Give whatever the kernel throws inside a code; its own words go to `detail["kernel"]`.

    Our own faults (KeyError, AttributeError ...) pass: they are no statement about the part.

    Raises:
        TempaError: with `code`, in place of an exception of the kernel.
        MemoryError: in place of the kernel's own `Standard_OutOfMemory`.
    """
    try:
        yield
    except Exception as error:
        if not _thrown_by_kernel(error):
            raise
        if type(error).__name__ == "Standard_OutOfMemory":
            raise MemoryError from error
        text = f"{type(error).__name__}: {error}"[:TEXT_CHARACTERS_MAX]
        raise TempaError(code, detail={**detail, "kernel": text}) from error


def _thrown_by_kernel(error: Exception) -> bool:
    """The kernel's exceptions share no base class in Python, only where they are defined.

    What C++ throws besides them (std::exception) arrives as a bare RuntimeError.
    """
    return type(error).__module__.startswith("OCP.") or type(error) is RuntimeError


def silence() -> None:
    """Take away the kernel's printers: it prints banners and warnings in colour to stdout."""
    Message.DefaultMessenger_s().ChangePrinters().Clear()
