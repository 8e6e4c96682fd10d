"""`tempa engine install triposplat`: the interpreter that the model runs under, and the settings for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import requires
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tempa.cli.exits import CommandFault, UsageFault
from tempa.cli.output import note

if TYPE_CHECKING:
    from collections.abc import Mapping

# What the model's two files import; torch and torchvision in one command, so that pip takes a pair.
_OF_THE_MODEL = ("torch>=2.6", "torchvision", "safetensors>=0.4", "tqdm")
_OF_TEMPA = ("pydantic", "rfc8785")  # beside the extra `splat`
_SITE_PACKAGES_GIB = 6


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for.

    `index_url`: where pip finds torch, if not where it finds everything; `unpublished`: whether weights may
    be others than the published ones.
    """

    checkout: Path
    weights: Path | None
    device: str
    index_url: str | None
    folder: Path
    unpublished: bool = False


def install(wish: Wish) -> dict[str, Any]:
    """Look at the checkout, make the environment, and try it; returns the engine's settings.

    Raises:
        UsageFault: the checkout or a weight file is not what it should be.
        CommandFault: the environment cannot be made, or does not import what it should.
    """
    pins = _pins(wish)
    python = _environment(wish)
    options = {"checkout": str(wish.checkout), "device": wish.device, "pins": pins}
    if wish.weights is not None:
        options["weights"] = str(wish.weights)
    _try(options, python)
    return {"python": str(python), "options": options}


def toml(settings: Mapping[str, Any]) -> str:
    """The settings as a part of a config file."""
    options = dict(settings["options"])
    pins = options.pop("pins")
    lines = [
        "[engines.triposplat]",
        f"python = {_quoted(settings['python'])}",
        "",
        "[engines.triposplat.options]",
    ]
    lines += [f"{name} = {_quoted(value)}" for name, value in options.items()]
    lines += [
        "",
        "[engines.triposplat.options.pins]",
        *(f"{_quoted(name)} = {_quoted(pin)}" for name, pin in pins.items()),
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # a TOML string escapes as JSON's do


def _pins(wish: Wish) -> dict[str, str]:
    """SHA-256 of every file, where the published ones agree."""
    from tempa.core.errors import TempaError
    from tempa.engines.splat.triposplat.files import CODE, WEIGHTS
    from tempa.engines.splat.triposplat.weights import sha256

    try:
        pins = {name: sha256(wish.checkout / name, name) for name in CODE}
        for name, path in _weights(wish.weights or wish.checkout / "ckpts").items():
            note(f"Reading {name} ...")
            pins[name] = sha256(path, name)
    except TempaError as error:
        raise UsageFault(f"{wish.checkout} is no checkout of TripoSplat: {error.message}") from None
    if not wish.unpublished:
        _require_published(pins, WEIGHTS)
    for name in CODE:
        if pins[name] != CODE[name]:
            note(f"{name} is not of the release that this adapter was tested with; it is pinned as it is.")
    return pins


def _weights(folder: Path) -> dict[str, Path]:
    """The weight files that are there and whole.

    Raises:
        UsageFault: one that is needed is not there.
        TempaError: one is not whole.
    """
    from tempa.engines.splat.triposplat import weights
    from tempa.engines.splat.triposplat.files import OPTIONAL, WEIGHTS

    missing = [name for name in WEIGHTS if not (folder / name).is_file()]
    needed = [name for name in missing if name not in OPTIONAL]
    if needed:
        raise UsageFault(
            f"These weight files are not in {folder}: {', '.join(needed)}.",
            "The model's page says where its weights are (VAST-AI/TripoSplat on the model hubs); put them "
            "there under these names, or say --weights DIR.",
        )
    for name in missing:
        note(f"{name} is not there: pictures will need transparency or a plain background.")
    found = {name: folder / name for name in WEIGHTS if name not in missing}
    for name, path in found.items():
        weights.look(path, name)
    return found


def _require_published(pins: Mapping[str, str], published: Mapping[str, str | None]) -> None:
    for name, expected in published.items():
        if expected is not None and name in pins and pins[name] != expected:
            raise UsageFault(
                f"{name} is not the published file: its SHA-256 is {pins[name]}, not {expected}.",
                "Fetch it again; if it is meant to be another, say --unpublished.",
            )


def _environment(wish: Wish) -> Path:
    """The environment's interpreter; one that is there is brought up to date."""
    python = wish.folder / "bin" / "python"
    note(f"Making {wish.folder}: torch takes up to {_SITE_PACKAGES_GIB} GiB there, and minutes.")
    if not python.exists():
        _do([sys.executable, "-m", "venv", str(wish.folder)], "No environment can be made")
    index = ["--index-url", wish.index_url] if wish.index_url else []
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    _do([*pip, *index, *_OF_THE_MODEL], "torch cannot be installed")
    _do([*pip, *_needed_by_tempa()], "What Tempa needs there cannot be installed")
    return python


def _needed_by_tempa() -> list[str]:
    """From Tempa's own metadata: the extra `splat`, and what every process of it imports."""
    wanted = []
    for line in requires("tempa") or ():
        requirement, _, marker = (part.strip() for part in line.partition(";"))
        of_the_extra = "extra ==" in marker and "splat" in marker
        if of_the_extra or (not marker and requirement.startswith(_OF_TEMPA)):
            wanted.append(requirement)
    return wanted


def _do(command: list[str], what: str) -> None:
    """Run a command whose output the person sees."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        subprocess.run(command, check=True, env=kept, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as error:
        raise CommandFault(f"{what}: {error}") from None


def _try(options: Mapping[str, Any], python: Path) -> None:
    from tempa.engines.splat.triposplat.fitness import unfit
    from tempa.engines.splat.triposplat.options import Options

    note("Trying it ...")
    reason = unfit(Options.model_validate(options), str(python))
    if reason is not None:
        kernel = reason.detail.get("kernel")
        lines = [reason.message, *([str(kernel)] if kernel else []), *([reason.hint] if reason.hint else [])]
        raise CommandFault(*lines)
