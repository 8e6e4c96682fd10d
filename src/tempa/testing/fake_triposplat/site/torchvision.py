"""Imported by the stand-in's checkout, as by the real one; of another release than torch it fails there."""

from __future__ import annotations

import torch  # type: ignore[import-not-found, unused-ignore]  # the one beside this file

__version__ = torch.__version__
if torch.fault("torch_error"):
    raise RuntimeError(torch.fault("torch_error"))
