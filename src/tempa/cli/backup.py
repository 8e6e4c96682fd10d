"""`tempa backup`, `tempa restore`: a data directory to a safe place and back."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempa.cli.exits import CommandFault
from tempa.cli.output import Json, note, print_json, wants_json
from tempa.cli.signals import ExitSignals
from tempa.cli.up import Config, Data, data_dir, require_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tempa.wiring.backup_files import Absent, Manifest

_NAMED_MAX = 10


def backup(
    target: Annotated[
        Path, typer.Argument(metavar="DEST", help="A new folder; or a file, if it ends in .tar.")
    ],
    data: Data = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Copy the database, the credentials and all files, while the server runs or not.

    What was answered 202 before the backup began is in it. It holds secrets: keep it as you keep keys.
    """
    from tempa.wiring.backup import back_up
    from tempa.wiring.settings import load_settings

    settings, folder, place = load_settings(config), data_dir(data), target.expanduser().absolute()
    require_store(settings, folder)
    with _work() as progress:
        manifest = back_up(settings, folder, place, progress)
    if wants_json(as_json):
        print_json({"backup": str(place), **_document(manifest)})
    else:
        print(f"{place}: {_summary(manifest)}.")
        _name(manifest.missing, "deleted meanwhile or lost before: not in the backup")
        _name(manifest.damaged, "not the bytes that were published: the disk has altered them")


def restore(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="What `tempa backup` made.")],
    data: Data = None,
    config: Config = None,
    force: Annotated[
        bool, typer.Option("--force", help="Move what is there aside; nothing is deleted.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Verify a backup and fill a data directory from it, with no server on it. `tempa up` goes on from there.

    Webhooks that were sent after the backup are sent again, each under its old webhook-id.
    """
    from tempa.wiring import restore as wiring
    from tempa.wiring.settings import load_settings

    settings, folder = load_settings(config), data_dir(data)
    with _work() as progress:
        restored = wiring.restore(settings, source.expanduser().absolute(), folder, progress, force=force)
    aside = restored.moved_aside
    if wants_json(as_json):
        moved = None if aside is None else str(aside)
        print_json({"data_dir": str(folder), "moved_aside": moved, **_document(restored.manifest)})
    else:
        print(f"{folder}: {_summary(restored.manifest)}, as of {restored.manifest.made_at}.")
        if aside is not None:
            note(f"What was there lies in {aside}.")


class _Progress:
    """One line that is written over, for a person at a terminal; else nothing."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._percent: tuple[str, int] | None = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        """How far it is."""
        percent = (stage, 100 * done // max(1, total))
        if self._shown and percent != self._percent:
            self._percent = percent
            print(f"\r{stage}: {percent[1]} %   ", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leave the line to what is said next."""
        if self._percent is not None:
            print("\r" + " " * 24 + "\r", end="", file=sys.stderr, flush=True)


@contextmanager
def _work() -> Iterator[_Progress]:
    """SIGTERM clears away what is half done, as Ctrl-C does; a fault is told in its own words."""
    from tempa.wiring.backup_files import BackupFault

    progress = _Progress()
    with ExitSignals() as signals:
        signals.release()
        try:
            yield progress
        except BackupFault as fault:
            raise CommandFault(str(fault)) from None
        finally:
            signals.hold()
            progress.end()


def _document(manifest: Manifest) -> dict[str, Any]:
    document = manifest.model_dump(mode="json", exclude={"files", "format"})
    return {**document, "files": len(manifest.files), "size_bytes": _size_bytes(manifest)}


def _summary(manifest: Manifest) -> str:
    counts = manifest.counts
    size = _size_bytes(manifest) / (1 << 20)
    unfinished = counts.get("unfinished_jobs", 0)
    return (
        f"{counts.get('jobs', 0)} jobs ({unfinished} not ended), {len(manifest.files)} files, {size:.1f} MiB"
    )


def _size_bytes(manifest: Manifest) -> int:
    return sum(entry.size_bytes for entry in manifest.files)


def _name(absent: Sequence[Absent], why: str) -> None:
    for one in absent[:_NAMED_MAX]:
        note(f"{one.key}: {why}")
    if len(absent) > _NAMED_MAX:
        note(f"and {len(absent) - _NAMED_MAX} more: {why}")
