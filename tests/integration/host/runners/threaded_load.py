"""An engine that leaves a thread behind when it is loaded."""

from __future__ import annotations

import threading


def load() -> None:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
