"""The files of a splat job: the Gaussians in the formats asked for, a preview and a turntable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.engines.splat import preview
from tempa.engines.splat.formats.export import export
from tempa.engines.splat.preview import THREE_QUARTER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tempa.engines.splat.gaussians import Gaussians
    from tempa.engines.splat.preview import View
    from tempa.jobs.ports import MadeFile, Progress


def publish(
    gaussians: Gaussians,
    work: Mapping[str, Any],
    folder: Path,
    progress: Progress,
    *,
    view: View = THREE_QUARTER,
    since: float = 0.0,
) -> tuple[MadeFile, ...]:
    """Write all that the work asks for into a folder: `export_formats` in their order, but .ply first.

    Each file of Gaussians is read back before it counts. Then come the preview and, if it has any
    frames, the turntable, both taken from `view`. The stages are "exporting" and "rendering", with
    fractions from `since` to 1.

    Raises:
        TempaError: EXPORT_FAILED.
        OSError: the disk is full or broken, which is no statement about the result.
    """
    names: Sequence[str] = sorted(work["export_formats"], key=lambda name: name != "ply")  # stable
    steps = [("exporting", _exporting(name, gaussians, folder)) for name in names]
    steps += [("rendering", step) for step in _rendering(gaussians, work["preview"], folder, view)]
    files = []
    for number, (stage, step) in enumerate(steps):
        progress(stage, round(since + (1.0 - since) * number / len(steps), 3))
        files.append(step())
    return tuple(files)


def _exporting(name: str, gaussians: Gaussians, folder: Path) -> Callable[[], MadeFile]:
    return lambda: export(name, gaussians, folder)


def _rendering(
    gaussians: Gaussians, asked: Mapping[str, int], folder: Path, view: View
) -> list[Callable[[], MadeFile]]:
    size = {"width": asked["width"], "height": asked["height"]}
    frames = asked["turntable_frames"]
    still = [lambda: preview.write_still(gaussians, view, folder, **size)]
    turntable = [lambda: preview.write_turntable(gaussians, view, frames, folder, **size)]
    return still + turntable if frames else still
