"""The operator's options of the engine: `[engines.triposplat.options]` in the settings."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from tempa.engines.splat.triposplat.files import CODE, WEIGHTS

_Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError("must be an absolute path")
    return path


_Folder = Annotated[str, AfterValidator(_absolute)]


class Options(BaseModel):
    """Where the checkout is, and how it is run.

    - `checkout`: the folder with `model.py` and `triposplat.py`; absent: the engine is not offered.
    - `weights`: the folder of the weight files; default: `ckpts` in the checkout.
    - `device`: `cuda`, `cuda:1`, ... or `cpu`.
    - `keep`: which networks stay on the device between jobs. `auto`: all where the device has 16 GiB.
    - `live_preview`: whether a picture is drawn as the sampler goes on; costs 0.6 GB with `keep = "none"`.
    - `pins`: SHA-256 by file name, over the published ones.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    checkout: _Folder | None = None
    weights: _Folder | None = None
    device: Annotated[str, Field(pattern=r"^(cpu|cuda(:\d{1,2})?)$")] = "cuda"
    keep: Literal["auto", "all", "none"] = "auto"
    live_preview: bool = True
    pins: dict[str, _Sha256] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _known_files(self) -> Self:
        unknown = sorted(self.pins.keys() - CODE.keys() - WEIGHTS.keys())
        if unknown:
            known = ", ".join([*CODE, *WEIGHTS])
            raise ValueError(f"pins: {', '.join(unknown)} is no file of the model's; these are: {known}")
        return self

    @property
    def checkout_folder(self) -> Path:
        """Of the two source files."""
        assert self.checkout is not None
        return Path(self.checkout)

    @property
    def weights_folder(self) -> Path:
        """Of the weight files."""
        return Path(self.weights) if self.weights else self.checkout_folder / "ckpts"

    def pin(self, name: str) -> str | None:
        """What a file's SHA-256 must be; None: nobody has said."""
        return self.pins.get(name) or CODE.get(name) or WEIGHTS.get(name)

    @property
    def digest(self) -> str:
        """Of all pins: another model, another digest."""
        pins: dict[str, Any] = {name: self.pin(name) for name in sorted([*CODE, *WEIGHTS])}
        return hashlib.sha256(json.dumps(pins, sort_keys=True).encode()).hexdigest()
