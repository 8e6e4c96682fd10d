"""The first key, the signing secret and the master key: made once, kept in the data directory."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from tempa.core.accounts import new_secret_key
from tempa.core.signing import new_secret

if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME = "credentials.json"


@dataclass(frozen=True, slots=True)
class Credentials:
    """What `credentials.json` holds (0600)."""

    api_key: str
    webhook_secret: str
    master_key: str  # 32 bytes, hex

    def derive(self, purpose: str) -> bytes:
        """A key for one purpose, 32 bytes; knowing it tells nothing of the master key."""
        return hmac.digest(bytes.fromhex(self.master_key), purpose.encode(), hashlib.sha256)


def load_credentials(data_dir: Path) -> Credentials:
    """Read the file, or make it. The caller holds the directory's lock."""
    path = data_dir / FILE_NAME
    if path.exists():
        return Credentials(**json.loads(path.read_text(encoding="utf-8")))
    made = Credentials(new_secret_key(), new_secret(), secrets.token_hex(32))
    write_private(path, json.dumps(asdict(made), indent=2) + "\n")
    return made


def write_private(path: Path, text: str) -> None:
    """Write a file for its owner only (0600), whole or not at all, and durably."""
    passing = path.with_name(f".{path.name}.{os.getpid()}")
    passing.unlink(missing_ok=True)
    descriptor = os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    passing.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
