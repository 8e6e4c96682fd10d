"""From a picture to clouds of Gaussians, stage by stage: what upstream's all-in-one method does in one go.

Its own method loads all networks at once, cannot be watched, and gives other bytes for the same seed: the
decoder draws from torch's global source. Here that source is seeded before every decode.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tempa.core.errors import TempaError
from tempa.engines.splat.triposplat import cloud
from tempa.engines.splat.triposplat.canvas import canvas
from tempa.engines.splat.triposplat.shortage import out_of_memory
from tempa.engines.splat.triposplat.torch_side import array

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tempa.engines.splat.gaussians import Gaussians
    from tempa.engines.splat.triposplat.live import Live
    from tempa.engines.splat.triposplat.modules import Checkout
    from tempa.engines.splat.triposplat.networks import Networks
    from tempa.engines.splat.triposplat.torch_side import Torch
    from tempa.jobs.ports import Progress

_PREVIEW_COUNT = 16_384
# Shares of the whole, at 20 steps on a GPU; the sampler is nearly all of it.
_ENCODING, _SAMPLING, _DECODING = 0.05, 0.1, 0.85


@dataclass(frozen=True, slots=True)
class Settings:
    """What a request says of the model. `counts` are Gaussians, the most first."""

    counts: tuple[int, ...]
    seed: int
    steps: int
    guidance_scale: float
    shift: float
    erode_radius: int

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Settings:
        """From a request's parameters, their defaults filled in."""
        return cls(
            counts=tuple(parameters["num_gaussians"]),
            seed=parameters["seed"],
            steps=parameters["steps"],
            guidance_scale=float(parameters["guidance_scale"]),
            shift=float(parameters["shift"]),
            erode_radius=parameters["erode_radius"],
        )


class Stages:
    """The model's stages on one device."""

    def __init__(self, checkout: Checkout, networks: Networks, torch: Torch) -> None:
        self._checkout = checkout
        self._networks = networks
        self._torch = torch

    def reconstruct(
        self, rgba: NDArray[np.uint8], settings: Settings, progress: Progress, live: Live | None
    ) -> list[Gaussians]:
        """One cloud for each of the counts, from one denoising.

        Raises:
            TempaError: CUDA_OUT_OF_MEMORY, OUT_OF_MEMORY, NUMERICAL_FAILURE.
        """
        generator = self._torch.generator(settings.seed)
        progress("encoding", _ENCODING)
        with self._named("encoding", settings.counts):
            seen = self._encode(rgba, settings, generator)
        progress("sampling", _SAMPLING)
        with self._named("sampling", settings.counts):
            latent = self._sample(seen, settings, generator, progress, live)
        _require_finite(latent)
        progress("decoding", _DECODING)
        with self._named("decoding", settings.counts):
            return self._decode(latent, settings)

    def without_background(self, rgb: Any) -> Any:
        """A Pillow picture with the alpha that the checkout's matting network gives it."""
        with self._named("matting", (1,)), self._networks.use("background") as (matting,):
            return matting.remove_background(rgb)

    def _encode(self, rgba: NDArray[np.uint8], settings: Settings, generator: Any) -> Any:
        picture = canvas(rgba, self._checkout.code._CANVAS_SIZE, settings.erode_radius)  # noqa: SLF001
        with self._networks.use("dinov3", "vae") as (dinov3, vae):
            return self._checkout.code.encode_image(picture, dinov3, vae, generator=generator)

    def _sample(
        self, seen: Any, settings: Settings, generator: Any, progress: Progress, live: Live | None
    ) -> Any:
        names = ("flow",) if live is None else ("flow", "decoder")
        with self._networks.use(*names) as (flow, *decoders), self._checkout.names():
            watched = _Watched(flow)
            draw = self._drawing(watched, decoders[0], settings.seed, live) if live else None

            def each(step: int, steps: int) -> None:
                if draw is not None:
                    draw()
                watched.begin()
                progress("sampling", _SAMPLING + (_DECODING - _SAMPLING) * step / steps)

            return self._checkout.code.sample_latent(
                watched,
                seen,
                steps=settings.steps,
                guidance_scale=settings.guidance_scale,
                shift=settings.shift,
                generator=generator,
                callback=each,
            )["latent"]

    def _drawing(self, watched: _Watched, decoder: Any, seed: int, live: Live) -> Callable[[], None]:
        """Draws what the sampler would end at, until memory does not allow that any more."""
        works = True

        def draw() -> None:
            nonlocal works
            if not (works and live.due):
                return
            try:
                self._torch.seed(seed)
                live.draw(cloud.gaussians(decoder.decode(watched.aim(), num_gaussians=_PREVIEW_COUNT)))
            except Exception as error:
                if self._torch.lacking(error) is None:
                    raise
                works = False  # a picture on the way is not worth the job
                self._torch.free()

        return draw

    def _decode(self, latent: Any, settings: Settings) -> list[Gaussians]:
        clouds = []
        with self._networks.use("decoder") as (decoder,), self._checkout.names():
            unit = int(decoder.gaussians_per_point)
            for count in settings.counts:
                self._torch.seed(settings.seed)  # each cloud is the one that its count alone would give
                clouds.append(cloud.gaussians(decoder.decode(latent, num_gaussians=_rounded(count, unit))))
        return clouds

    @contextlib.contextmanager
    def _named(self, stage: str, counts: Sequence[int]) -> Iterator[None]:
        """Tell a lack of memory by its code; everything else passes."""
        try:
            yield
        except Exception as error:
            lacking = self._torch.lacking(error)
            if lacking is None:
                raise
            memory = self._torch.memory()
            if lacking == "host" or memory is None:
                raise TempaError("OUT_OF_MEMORY", detail={"stage": stage}) from error
            raise out_of_memory(memory, stage, counts) from error


class _Watched:
    """The flow network, as the sampler calls it; remembers the first call of a step, the conditional one."""

    def __init__(self, flow: Any) -> None:
        self._flow = flow
        self._call: tuple[Any, Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._flow, name)

    def __call__(self, x: Any, t: Any, seen: Any) -> Any:
        velocity = self._flow(x, t, seen)
        if self._call is None:
            self._call = x["latent"], t, velocity["latent"]
        return velocity

    def begin(self) -> None:
        """The next call is a new step's."""
        self._call = None

    def aim(self) -> Any:
        """Where the flow leads from here in a straight line: noise is at t = 1, the latent at t = 0."""
        assert self._call is not None
        x, t, velocity = self._call
        return x - velocity * (float(t[0]) / 1000.0)  # upstream counts time in thousandths


def _rounded(count: int, unit: int) -> int:
    """The nearest number of Gaussians that the decoder can make: `unit` to a point."""
    return max(1, round(count / unit)) * unit


def _require_finite(latent: Any) -> None:
    values = array(latent)
    lost = int(values.size - np.count_nonzero(np.isfinite(values)))
    if lost:
        detail = {"stage": "sampling", "values": int(values.size), "not_finite": lost}
        raise TempaError("NUMERICAL_FAILURE", detail=detail)
