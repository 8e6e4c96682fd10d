"""Name lookup: in threads of our own, each answer judged whole, remembered for a minute.

libcurl could look names up too, but shows them one by one as it connects, so that a name with a
public and a private address would pass; and its 20 threads, two to a name, are all taken while ten
names wait for a mute name server, 10 s each (measured: every other new name timed out meanwhile).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.core.addresses import is_twin_of_open_loopback, literal_address, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tempa.core.addresses import Network

_KNOWN_SECONDS = 60.0  # getaddrinfo tells no time to live
_KNOWN_MAX = 4096
_LOOKUPS_MAX = 128  # one thread each; a lookup can hang for 10 s
_ADDRESSES_MAX = 8  # tried for one connection; all are judged


@dataclass(frozen=True, slots=True)
class Place:
    """What a host name stands for. `addresses` is None for a literal, which needs no lookup."""

    blocked: bool
    addresses: tuple[str, ...] | None


class Names:
    """Belongs to one event loop. `resolve` takes a name and returns its addresses, or raises OSError."""

    def __init__(self, allow_networks: Sequence[Network], resolve: Callable[[str], list[str]]) -> None:
        self._allow_networks = allow_networks
        self._resolve = resolve
        self._known: dict[str, tuple[float, Place]] = {}
        self._lookups: dict[str, asyncio.Task[Place | None]] = {}
        self._slots = asyncio.Semaphore(_LOOKUPS_MAX)

    def known(self, host: str) -> Place | None:
        """What needs no waiting: a literal address, or a name looked up within the last minute."""
        expires, place = self._known.get(host, (0.0, None))
        if expires > time.monotonic():
            return place
        literal = literal_address(host)
        if literal is None:
            return None
        return self._remember(host, Place(refused(literal, self._allow_networks), None))

    async def look_up(self, host: str, timeout_seconds: float) -> Place | None:
        """One lookup for all who ask meanwhile; None if there is no such name, or no answer in time."""
        lookup = self._lookups.get(host)
        if lookup is None:
            lookup = self._lookups[host] = asyncio.create_task(self._look_up(host))
        try:
            async with asyncio.timeout(timeout_seconds):
                return await asyncio.shield(lookup)  # others may have more time
        except TimeoutError:
            return None

    def close(self) -> None:
        """Give up the lookups under way. Their threads end by themselves."""
        for lookup in self._lookups.values():
            lookup.cancel()

    async def _look_up(self, host: str) -> Place | None:
        try:
            async with self._slots:
                addresses = await _in_thread(self._resolve, host)
        except OSError:
            return None
        finally:
            del self._lookups[host]
        return self._remember(host, self._judge(addresses)) if addresses else None

    def _judge(self, addresses: Sequence[str]) -> Place:
        """One refused address condemns the name: whoever sent it may send it alone next time."""
        usable = tuple(one for one in addresses if not refused(one, self._allow_networks))
        strange = [one for one in addresses if one not in usable]
        twins = all(is_twin_of_open_loopback(one, self._allow_networks) for one in strange)
        return Place(not (usable and twins), usable[:_ADDRESSES_MAX])

    def _remember(self, host: str, place: Place) -> Place:
        self._known.pop(host, None)
        self._known[host] = (time.monotonic() + _KNOWN_SECONDS, place)
        if len(self._known) > _KNOWN_MAX:
            del self._known[next(iter(self._known))]  # the oldest: all are kept equally long
        return place


def system_addresses(host: str) -> list[str]:
    """What the system's resolver says, in its order of preference (RFC 6724)."""
    found = socket.getaddrinfo(host.encode("ascii"), None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


async def _in_thread(resolve: Callable[[str], list[str]], host: str) -> list[str]:
    """Not asyncio.to_thread: a lookup that hangs would hold a place in its pool, and the process's exit."""
    future: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()

    def work() -> None:
        result: list[str] | OSError
        try:
            result = resolve(host)
        except (OSError, UnicodeError) as error:
            result = error if isinstance(error, OSError) else OSError(str(error))
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            future.get_loop().call_soon_threadsafe(_settle, future, result)

    threading.Thread(target=work, name="tempa-name-lookup", daemon=True).start()
    return await future


def _settle(future: asyncio.Future[Any], result: list[str] | OSError) -> None:
    if future.done():
        return
    if isinstance(result, OSError):
        future.set_exception(result)
    else:
        future.set_result(result)
