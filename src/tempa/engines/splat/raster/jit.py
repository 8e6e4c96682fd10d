"""Compiling kernels: one decorator, so that every kernel of the family is compiled the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

import numba

if TYPE_CHECKING:
    from collections.abc import Callable

_Function = TypeVar("_Function", bound="Callable[..., object]")


def kernel(function: _Function) -> _Function:
    """Compile at the first call for the types of that call, and keep the machine code on disk.

    Never `parallel=True`: its threading layer starts threads where a zygote may have none. A kernel
    releases the interpreter's lock, so ranges of work can be handed to threads of our own. Never
    `fastmath`: a sum's order is part of what makes the same work the same bytes. A division by nought
    gives what IEEE 754 says and no exception, here as in NumPy.

    The cache knows a kernel's own file only: who changes a constant that a kernel imports from another
    file has to empty it.
    """
    try:
        return cast("_Function", numba.njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:  # no folder for the cache can be written: compile in every zygote anew
        return cast("_Function", numba.njit(nogil=True, error_model="numpy")(function))


def inlined(function: _Function) -> _Function:
    """Compile as a part of the kernels that call it."""
    return cast("_Function", numba.njit(nogil=True, error_model="numpy", inline="always")(function))
