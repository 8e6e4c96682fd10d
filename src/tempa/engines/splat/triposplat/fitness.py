"""Whether the engine can run here, and if not, why. For the server and `tempa doctor`: no torch in here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tempa.core.errors import TempaError
from tempa.engines.splat.triposplat import weights
from tempa.engines.splat.triposplat.files import CODE, OPTIONAL, WEIGHTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tempa.engines.splat.triposplat.options import Options

# torch and torchvision first: releases that do not belong together fail when they are imported.
PACKAGES = (
    "torch",
    "torchvision",
    "safetensors",
    "tqdm",
    "numpy",
    "PIL",
    "scipy",
    "numba",
    "gaussforge",
    "pydantic",
)
_PROBE = """
import importlib, json, sys
names = sys.argv[1:]
found = {name: getattr(importlib.import_module(name), "__version__", "") for name in names}
import torch
found["cuda"] = bool(torch.cuda.is_available())
print(json.dumps(found))
"""
_PROBE_SECONDS = 90.0  # torch from a cold network disk


def unfit(options: Options, python: str | None, *, whole_files: bool = False) -> TempaError | None:
    """Why the engine cannot run; None: it can. The interpreter is run once, and remembered.

    `whole_files` hashes the weights too (3.8 GB); without it their headers are read, and their hashes wait
    until they are loaded.
    """
    return next(faults(options, python, whole_files=whole_files), None)


def faults(options: Options, python: str | None, *, whole_files: bool = False) -> Iterator[TempaError]:
    """Everything that keeps the engine from running, the first to be mended first."""
    if options.checkout is None:
        message = "No checkout of TripoSplat is set (engines.triposplat.options.checkout)."
        hint = "`tempa engine install triposplat --checkout DIR` makes what it needs."
        yield TempaError("MODEL_NOT_INSTALLED", message, hint=hint)
        return
    yield from _file_faults(options, whole_files=whole_files)
    try:
        found = versions(python or sys.executable)
    except TempaError as error:
        yield error
        return
    if options.device != "cpu" and not found["cuda"]:
        message = "The interpreter's torch finds no CUDA device."
        hint = 'Set engines.triposplat.options.device = "cpu" to run, slowly, without one.'
        yield TempaError("DEVICE_UNAVAILABLE", message, hint=hint)


def _file_faults(options: Options, *, whole_files: bool) -> Iterator[TempaError]:
    for name in CODE:
        try:
            weights.require(options.checkout_folder / name, name, options.pin(name))
        except TempaError as error:
            yield error
    for name in WEIGHTS:
        path = options.weights_folder / name
        if name in OPTIONAL and not path.exists():
            continue
        try:
            weights.look(path, name)
            if options.pin(name) is None:
                raise weights.unpinned(name)
            if whole_files:
                weights.require(path, name, options.pin(name))
        except TempaError as error:
            yield error


@lru_cache(maxsize=4)
def versions(python: str) -> dict[str, Any]:
    """What the engine's interpreter imports: versions by package, and `cuda`.

    Raises:
        TempaError: MODEL_NOT_INSTALLED with the interpreter's own last line.
    """
    try:
        process = subprocess.run(
            [python, "-P", "-c", _PROBE, *PACKAGES],
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            cwd="/",
            env={name: value for name, value in os.environ.items() if not name.startswith("TEMPA_")},
        )
    except OSError as error:
        raise _no_environment(f"{python} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise _no_environment(f"it did not import torch within {_PROBE_SECONDS:.0f} s") from error
    if process.returncode != 0:
        lines = process.stderr.strip().splitlines() or [f"exit code {process.returncode}"]
        raise _no_environment(lines[-1])
    found: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return found


def _no_environment(why: str) -> TempaError:
    return TempaError(
        "MODEL_NOT_INSTALLED",
        "The interpreter of the engine does not have what the model needs.",
        hint="`tempa engine install triposplat --checkout DIR` makes one that has.",
        detail={"kernel": why},
    )
