"""How long a server's certificate is good for."""

from __future__ import annotations

import socket
import ssl
from datetime import UTC, datetime
from urllib.parse import urlsplit

_DAY_SECONDS = 86_400


def days_left(url: str, timeout_seconds: float) -> float | None:
    """Days until the certificate of an https URL expires, negative once it has; None if none is shown.

    Whether it is trusted is not asked here: one that is not has an end too, which may be the reason.
    """
    from cryptography import x509

    parts = urlsplit(url)
    if parts.scheme.lower() != "https" or parts.hostname is None:
        return None
    shown = _certificate(parts.hostname, parts.port or 443, timeout_seconds)
    if shown is None:
        return None
    end = x509.load_der_x509_certificate(shown).not_valid_after_utc
    return (end - datetime.now(UTC)).total_seconds() / _DAY_SECONDS


def _certificate(host: str, port: int, timeout_seconds: float) -> bytes | None:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is sent: only its date is read
    try:
        with (
            socket.create_connection((host, port), timeout_seconds) as connection,
            context.wrap_socket(connection, server_hostname=host) as secured,
        ):
            return secured.getpeercert(binary_form=True)
    except (OSError, ValueError):
        return None
