"""Which addresses Tempa may call: the tables, and what a webhook URL may say.

The tables are our own because `ipaddress.is_global` let 13 of 33 dangerous addresses pass on
Python 3.11.7 (multicast, NAT64, 6to4, cloud metadata) and changes from release to release.
"""

from __future__ import annotations

import re
import unicodedata
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TYPE_CHECKING

from tempa.core.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from collections.abc import Sequence

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_DENIED_V4 = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier NAT; Alibaba's metadata service
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's platform service, on a public number
        "169.254.0.0/16",  # link-local; most clouds' metadata service
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments; Oracle's metadata service
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
_GLOBAL_V6 = IPv6Network("2000::/3")  # all that is routed; loopback, NAT64, ULA, multicast lie outside
_DENIED_V6 = tuple(
    IPv6Network(block)
    for block in (
        "2001::/23",  # protocol assignments; Teredo carries any IPv4 address
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4 carries any IPv4 address
        "3fff::/20",  # documentation
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")
_LOOPBACK = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
_LOCAL_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"})

_URL = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/?#]*)", re.IGNORECASE)
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>.*))?", re.DOTALL)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE)
_PORT = re.compile(r"[0-9]{1,5}")
_NUMBER = re.compile(
    r"0x0*(?P<hex>[0-9a-f]{0,8})|0+(?P<octal>[0-7]{0,11})|(?P<decimal>[1-9][0-9]{0,9})", re.IGNORECASE
)
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*", re.IGNORECASE)
_DOTS = str.maketrans("\u3002\uff0e\uff61", "...")  # what IDNA reads as a dot


def refused(address: Address | str, allow_networks: Sequence[Network] = ()) -> bool:
    """Whether a connection to `address` must not be made. Text that is not an address is refused.

    `allow_networks` open more than the public internet. An IPv4-mapped address counts as the IPv4
    address it carries; so does one behind NAT64 (64:ff9b::/96), if that prefix is allowed at all.
    """
    found = _parsed(address) if isinstance(address, str) else address
    if found is None:
        return True
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if any(found in network for network in allow_networks):
        return found in _NAT64 and refused(IPv4Address(int(found) & 0xFFFFFFFF), allow_networks)
    if isinstance(found, IPv4Address):
        return any(found in block for block in _DENIED_V4)
    return found not in _GLOBAL_V6 or any(found in block for block in _DENIED_V6)


def is_twin_of_open_loopback(address: str, allow_networks: Sequence[Network]) -> bool:
    """Whether `address` is 127.0.0.1 or ::1 while the other one may be called.

    `localhost` resolves to both. Where one is open, meeting the other is no sign of a forged name.
    """
    return _parsed(address) in _LOOPBACK and _is_loopback_open(allow_networks)


def literal_address(host: str) -> Address | None:
    """The address that `host` spells, in any spelling getaddrinfo or a browser takes; None for a name.

    Besides the usual forms: 127.1, 0x7f000001, 2130706433, 017700000001 (inet_aton), full-width
    and circled digits and ideographic dots (IDNA), brackets, zone ids, one trailing dot.
    """
    plain = unicodedata.normalize("NFKC", host).translate(_DOTS).strip().removesuffix(".")
    if plain.startswith("[") and plain.endswith("]"):
        plain = plain[1:-1]
    if ":" in plain:
        return _parsed(plain)
    return _inet_aton(plain)


def check_url(
    url: str,
    *,
    allow_networks: Sequence[Network] = (),
    allow_http: bool = False,
    length_max: int = DEFAULT_LIMITS.url_length_max,
) -> str | None:
    """Why a webhook URL is refused at the door, in words that say what to do; None if it is not.

    Plain http is taken with `allow_http`, and to loopback where `allow_networks` open loopback: that
    never leaves the machine. A name is not looked up here: what it resolves to is checked at the
    connected socket.
    """
    match = _URL.match(url)
    fault = _text_fault(url, length_max)
    if fault is not None or match is None:
        return fault or "Give an absolute URL that begins with https://."
    authority = _AUTHORITY.fullmatch(match["authority"])
    if authority is None or "@" in match["authority"]:
        return (
            "Write a plain host: a name, an IPv4 address, an IPv6 address in brackets; no user or password."
        )
    host = authority["host"]
    fault = _port_fault(authority["port"]) or _address_fault(host, allow_networks) or _name_fault(host)
    if fault is None and not (_is_https(match) or allow_http or _is_open_loopback(host, allow_networks)):
        return "Use https://; plain http is not allowed here."
    return fault or _path_fault(url[match.end() :])


def _parsed(text: str) -> Address | None:
    try:
        return IPv6Address(text.partition("%")[0]) if ":" in text else IPv4Address(text)
    except AddressValueError:
        return None


def _inet_aton(text: str) -> IPv4Address | None:
    """One to four numbers, each decimal, octal or hexadecimal; the last fills the bytes that are left."""
    parts = [_number(part) for part in text.split(".")]
    *leading, last = parts
    if len(parts) > 4 or last is None or last >= 256 ** (5 - len(parts)):
        return None
    value = 0
    for part in leading:
        if part is None or part > 255:
            return None
        value = value << 8 | part
    return IPv4Address(value << 8 * (5 - len(parts)) | last)


def _number(text: str) -> int | None:
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    if match["decimal"]:
        return int(match["decimal"])
    return int(match["hex"] or "0", 16) if match["octal"] is None else int(match["octal"] or "0", 8)


def _text_fault(url: str, length_max: int) -> str | None:
    if len(url) > length_max:
        return f"Shorten the URL to at most {length_max} characters."
    if any(character.isspace() or unicodedata.category(character) == "Cc" for character in url):
        return "Remove spaces and control characters, or percent-encode them."
    if "\\" in url:  # a slash to a browser, a letter to curl
        return "Percent-encode the backslash."
    return None


def _port_fault(port: str | None) -> str | None:
    if port is None or (_PORT.fullmatch(port) and 1 <= int(port) <= 65535):
        return None
    return "Give a port from 1 to 65535, or none."


def _address_fault(host: str, allow_networks: Sequence[Network]) -> str | None:
    address = literal_address(host)
    if address is not None and refused(address, allow_networks):
        return "Use a host with a public address; this one may not be called from here."
    if address is None and _is_local_name(host) and not _is_loopback_open(allow_networks):
        return "Use a host with a public address; localhost is this server itself."
    return None


def _name_fault(host: str) -> str | None:
    if not host.strip("[]."):
        return "Give the URL a host."
    if not host.isascii():
        return _ascii_hint(host)
    address = literal_address(host)
    if address is not None:
        fits = isinstance(address, IPv6Address) == host.startswith("[")
        return None if fits else "Write an IPv6 address in brackets, an IPv4 address without."
    labels = host.removesuffix(".").split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        return "Write the host as a DNS name or an IP address."
    if _NUMERIC_LABEL.fullmatch(labels[-1]):
        return "The host ends in a number but is no IPv4 address; write a name or a full address."
    return None


def _path_fault(rest: str) -> str | None:
    return None if rest.isascii() else "Percent-encode what is not plain ASCII in the URL's path and query."


def _is_https(match: re.Match[str]) -> bool:
    return match["scheme"].lower() == "https"


def _ascii_hint(host: str) -> str:
    """One spelling only: IDNA 2003 and 2008 read some names differently, and we do not choose for others."""
    try:
        return f"Write the host in its ASCII form: {host.encode('idna').decode()}."
    except UnicodeError:
        return "Write the host in its ASCII form (xn--...)."


def _is_local_name(host: str) -> bool:
    name = unicodedata.normalize("NFKC", host).translate(_DOTS).lower().removesuffix(".")
    return name in _LOCAL_NAMES or name.endswith(".localhost")


def _is_loopback_open(allow_networks: Sequence[Network]) -> bool:
    return not all(refused(address, allow_networks) for address in _LOOPBACK)


def _is_open_loopback(host: str, allow_networks: Sequence[Network]) -> bool:
    """Whether `host` is loopback in so many words. That it may be called has been checked before."""
    address = literal_address(host)
    if address is None:
        return _is_local_name(host) and _is_loopback_open(allow_networks)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback
