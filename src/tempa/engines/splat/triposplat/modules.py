"""The checkout's two source files as modules, from the very bytes whose hash was checked.

They import each other by top-level names, `model` and `triposplat`, when they are loaded and again in the
middle of a decode. Those names stand in `sys.modules` only meanwhile; `sys.path` is not touched.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tempa.core.errors import TempaError
from tempa.engines.splat.triposplat import weights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tempa.engines.splat.triposplat.options import Options

_PRIVATE = "_tempa_triposplat_checkout"
_NAMES = ("model", "triposplat")  # in the order of their imports


class Checkout:
    """The two modules. Attributes are asked of `code`, the module `triposplat`."""

    def __init__(self, options: Options) -> None:
        self._modules: dict[str, ModuleType] = {}
        for name in _NAMES:
            source = _source(options, f"{name}.py")
            module = ModuleType(f"{_PRIVATE}.{name}")
            module.__file__ = str(options.checkout_folder / f"{name}.py")
            self._modules[name] = module
            with self.names():
                _execute(source, module, name)
        if options.device == "cpu":
            _draw_on_cpu(self.code)

    @property
    def code(self) -> Any:
        """The module `triposplat`: its loaders and stages."""
        return self._modules["triposplat"]

    @contextlib.contextmanager
    def names(self) -> Iterator[None]:
        """While inside, `import model` and `import triposplat` find these two."""
        before = {name: sys.modules.get(name) for name in _NAMES}
        sys.modules.update(self._modules)
        try:
            yield
        finally:
            for name, module in before.items():
                if module is None:
                    sys.modules.pop(name, None)
                else:
                    sys.modules[name] = module


def _source(options: Options, name: str) -> bytes:
    """A file's bytes, if they are the pinned ones."""
    path, pin = options.checkout_folder / name, options.pin(name)
    weights.require(path, name, pin)
    source = path.read_bytes()
    if hashlib.sha256(source).hexdigest() != pin:  # changed between two reads
        raise TempaError(
            "MODEL_CHECKSUM_MISMATCH", f"{name} changed while it was read.", detail={"file": name}
        )
    return source


def _execute(source: bytes, module: ModuleType, name: str) -> None:
    try:
        exec(compile(source, f"{name}.py", "exec"), module.__dict__)  # noqa: S102 - pinned by its hash
    except Exception as error:
        raise TempaError(
            "MODEL_NOT_INSTALLED",
            f"{name}.py cannot be imported.",
            hint="torch and torchvision must be of releases that belong together.",
            detail={"kernel": f"{type(error).__name__}: {error}"[:500]},
        ) from error


def _draw_on_cpu(code: Any) -> None:
    """Have the decoder make its Gaussians on the CPU.

    It calls the class by its name in the module, without a device, and the default is CUDA: on a machine
    without one a decode fails after all the sampling.
    """
    original = code.Gaussian

    def make(self: Any, *values: Any, **named: Any) -> None:
        original.__init__(self, *values, **{"device": "cpu", **named})

    code.Gaussian = type("Gaussian", (original,), {"__init__": make})
