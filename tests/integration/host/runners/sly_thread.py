"""An engine that starts a thread after `load` was found clean: at the zygote's collection."""

from __future__ import annotations

import gc
import threading
from typing import Any


def _start_thread(phase: str, details: dict[str, Any]) -> None:
    gc.callbacks.clear()
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def load() -> None:
    gc.callbacks.append(_start_thread)
