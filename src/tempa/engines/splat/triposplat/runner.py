"""How the engine `triposplat` runs: a resident `Runner`. Importing this loads neither torch nor the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.engines.splat import gate, outputs
from tempa.engines.splat.image import intake
from tempa.engines.splat.raster import render
from tempa.engines.splat.triposplat import lods, pictures
from tempa.engines.splat.triposplat.files import CODE
from tempa.engines.splat.triposplat.live import Live
from tempa.engines.splat.triposplat.modules import Checkout
from tempa.engines.splat.triposplat.networks import Networks
from tempa.engines.splat.triposplat.options import Options
from tempa.engines.splat.triposplat.stages import Settings, Stages
from tempa.engines.splat.triposplat.torch_side import Torch
from tempa.jobs.ports import Report

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tempa.engines.splat.gaussians import Gaussians
    from tempa.engines.splat.image.picture import Picture
    from tempa.jobs.ports import MadeFile, Progress


_CHECKED = 0.9  # of the whole


class Model:
    """The checkout, loaded: what lives as long as the process.

    Raises:
        TempaError: MODEL_NOT_INSTALLED, MODEL_CHECKSUM_MISMATCH.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.torch = Torch(options.device)
        checkout = Checkout(options)
        self.networks = Networks(options, checkout, self.torch)
        self.stages = Stages(checkout, self.networks, self.torch)
        with checkout.names():
            self.networks.load_kept()

    def read(self, path: Path, parameters: Mapping[str, Any]) -> Picture:
        """The request's picture."""
        matting = self.stages.without_background if self.networks.has("background") else None
        return pictures.read(path, parameters, matting)

    def told(self, picture: Picture, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """What the result came from, so that it can be made again."""
        return {
            "method": "triposplat",
            "device": self.options.device,
            "torch": self.torch.version,
            "mask": picture.mask,
            "parameters": dict(parameters),
            "model_files": {name: self.options.pin(name) for name in (*CODE, *self.networks.files)},
        }


_options = Options()
_model: Model | None = None


def configure(options: Mapping[str, Any]) -> None:
    """Take the operator's options."""
    global _options  # noqa: PLW0603 - a runner is a module; this is its state
    _options = Options.model_validate(dict(options))


def load() -> None:
    """Check and import the checkout, and load the networks that stay.

    Raises:
        TempaError: MODEL_NOT_INSTALLED, MODEL_CHECKSUM_MISMATCH.
    """
    global _model  # noqa: PLW0603 - the same
    _model = Model(_options)
    intake.prepare()
    render.compile()


def run(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    """Make Gaussians of a picture, in every density asked for.

    Raises:
        TempaError: a code of the picture's, DEVICE_UNAVAILABLE, CUDA_OUT_OF_MEMORY, OUT_OF_MEMORY,
            NUMERICAL_FAILURE, DEGENERATE_OUTPUT, EXPORT_FAILED.
    """
    assert _model is not None
    parameters = work["parameters"]
    settings = Settings.of(parameters)
    progress("reading", 0.0)
    _model.torch.require_device()
    _model.torch.forget_peak()
    picture = _model.read(folder / "inputs" / "image", parameters)
    live = Live(folder) if _model.options.live_preview else None
    try:
        clouds = _model.stages.reconstruct(picture.rgba, settings, progress, live)
    finally:
        if live is not None:
            live.end()
    progress("checking", _CHECKED)
    measured = [gate.accept(cloud, asked=count) for cloud, count in zip(clouds, settings.counts, strict=True)]
    files = _publish(work, clouds, settings.counts, folder, progress)
    return Report(files, measured[0] | _model.told(picture, parameters) | {"densities": measured})


def _publish(
    work: Mapping[str, Any],
    clouds: list[Gaussians],
    counts: tuple[int, ...],
    folder: Path,
    progress: Progress,
) -> tuple[MadeFile, ...]:
    """The densest is the result; the others lie beside it."""
    made = outputs.publish(clouds[0], work, folder, progress, since=_CHECKED)
    for cloud, count in zip(clouds[1:], counts[1:], strict=True):
        made += lods.publish(cloud, count, work["export_formats"], folder)
    return made
