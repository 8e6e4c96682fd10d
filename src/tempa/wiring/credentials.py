"""The first key, the signing secret and the master key: made once, kept in the data directory."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import re
import secrets
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tempa.core.accounts import DEFAULT_ACCOUNT, is_key_text, new_secret_key
from tempa.core.crash import crash_point
from tempa.core.signing import new_secret, secret_key, secret_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILE_NAME = "credentials.json"
_MASTER_KEY = re.compile(r"[0-9a-f]{64}")


class CredentialsUnusable(Exception):  # noqa: N818 - it says what is the case
    """`credentials.json` is there and is not what we wrote. It was left as it is."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"{path} cannot be used: {why}. Restore it from a backup; or move it away, and the next start "
            "makes a new API key, signing secret and master key (links that are out then stop working)."
        )


@dataclass(frozen=True, slots=True)
class Credentials:
    """What `credentials.json` holds (0600)."""

    api_key: str
    webhook_secret: str
    master_key: str  # 32 bytes, hex

    def derive(self, purpose: str) -> bytes:
        """A key for one purpose, 32 bytes; knowing it tells nothing of the master key."""
        return hmac.digest(bytes.fromhex(self.master_key), purpose.encode(), hashlib.sha256)

    def signing_secret(self, account: str) -> str:
        """What an account's webhooks are signed with, where they have no endpoint of their own."""
        if account == DEFAULT_ACCOUNT:
            return self.webhook_secret
        return secret_of(self.derive(f"webhooks of {account}"))


def load_credentials(data_dir: Path) -> Credentials:
    """Read the file, or make it: of several processes that start at once, one does.

    Raises `CredentialsUnusable`.
    """
    path = data_dir / FILE_NAME
    if not path.exists():
        made = Credentials(new_secret_key(), new_secret(), secrets.token_hex(32))
        write_private(path, json.dumps(asdict(made), indent=2) + "\n", replace=False)
        crash_point("credentials.written")
    return _read(path)


def _read(path: Path) -> Credentials:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # no JSON, or no UTF-8: what a torn or foreign file is
        raise CredentialsUnusable(path, "it is empty or not whole JSON") from error
    if fault := _fault(document):
        raise CredentialsUnusable(path, fault)
    return Credentials(**document)


def _fault(document: Any) -> str | None:
    """What is wrong with it, in words that tell no secret."""
    names = [*Credentials.__dataclass_fields__]
    if not isinstance(document, dict) or sorted(document) != sorted(names):
        return f"it is no JSON object of {', '.join(names)}"
    rules: dict[str, Callable[[str], object]] = {
        "api_key": is_key_text,
        "webhook_secret": _is_secret,
        "master_key": _MASTER_KEY.fullmatch,
    }
    values = {name: value if isinstance(value, str) else "" for name, value in document.items()}
    wrong = [name for name, holds in rules.items() if not holds(values[name])]
    return f"in it, {', '.join(wrong)}: not what we wrote" if wrong else None


def _is_secret(text: str) -> bool:
    try:
        return bool(secret_key(text))
    except ValueError:
        return False


def write_private(path: Path, text: str, *, replace: bool = True) -> None:
    """Write a file for its owner only (0600), whole or not at all, and durably.

    Without `replace` one that is there by then stays. Raises OSError, which names the file.
    """
    passing = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        _write_by(passing, path, text, replace=replace)
    except OSError as error:  # a write that found no room names no file, and leaves half of one
        with contextlib.suppress(OSError):
            passing.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error


def _write_by(passing: Path, path: Path, text: str, *, replace: bool) -> None:
    passing.unlink(missing_ok=True)
    descriptor = os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    crash_point("private_file.flushed")
    if replace:
        passing.replace(path)
    else:
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(passing)
        passing.unlink()
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
