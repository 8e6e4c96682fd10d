"""Links to result files that work without a key until they expire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

from tempa.core.clock import from_ms, to_ms
from tempa.core.signing import sign_link, verify_link

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tempa.core.clock import Clock


class Links(Protocol):
    """Mints a fresh link at each call; the file itself stays until the job's `retained_until`."""

    def artifact(self, job_id: str, name: str) -> tuple[str, datetime]: ...  # URL, when it expires


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedLinks:
    """Links to `GET /v1/artifacts/{job_id}/{name}`, signed with the first of `keys`, checked with all."""

    public_url: str
    keys: Sequence[bytes]
    ttl_seconds: int
    clock: Clock

    def artifact(self, job_id: str, name: str) -> tuple[str, datetime]:
        """A link that works for `ttl_seconds`."""
        expires = to_ms(self.clock.now()) // 1000 + self.ttl_seconds
        signature = sign_link(self.keys[0], (job_id, name), expires)
        path = f"/v1/artifacts/{quote(job_id)}/{quote(name)}"
        url = f"{self.public_url.rstrip('/')}{path}?expires={expires}&signature={signature}"
        return url, from_ms(expires * 1000)

    def holds(self, job_id: str, name: str, expires: int, signature: str) -> bool:
        """Whether a link is ours, unaltered and not expired."""
        fresh = expires * 1000 > to_ms(self.clock.now())
        return fresh and verify_link(self.keys, (job_id, name), expires, signature)
