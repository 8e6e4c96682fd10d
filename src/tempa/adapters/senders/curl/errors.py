"""From libcurl's error numbers to the closed set of `webhooks.ports.Answer.error`."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pycurl

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOO_LARGE = 100  # CURLE_TOO_LARGE: one header beyond libcurl's own limit; pycurl has no name for it

_NAMES: Mapping[int, str] = {
    pycurl.E_OK: "protocol_error",  # an end without a final answer
    pycurl.E_OPERATION_TIMEDOUT: "timeout",
    pycurl.E_UNSUPPORTED_PROTOCOL: "protocol_error",  # HTTP/0.9; a URL's scheme is checked before
    pycurl.E_FTP_WEIRD_SERVER_REPLY: "protocol_error",  # pycurl's name for CURLE_WEIRD_SERVER_REPLY
    _TOO_LARGE: "headers_too_large",
    pycurl.E_URL_MALFORMAT: "invalid_url",
    pycurl.E_COULDNT_RESOLVE_HOST: "dns",
    pycurl.E_SSL_CONNECT_ERROR: "tls",
    pycurl.E_PEER_FAILED_VERIFICATION: "tls",
    pycurl.E_SSL_CERTPROBLEM: "tls",
    pycurl.E_SSL_CIPHER: "tls",
    pycurl.E_SSL_ISSUER_ERROR: "tls",
    pycurl.E_SSL_INVALIDCERTSTATUS: "tls",
    pycurl.E_GOT_NOTHING: "reset",
    pycurl.E_RECV_ERROR: "reset",
    pycurl.E_SEND_ERROR: "reset",
}
_CONNECT: Mapping[int, str] = {
    errno.ECONNREFUSED: "connect_refused",
    errno.ETIMEDOUT: "connect_timeout",
}


def error_name(code: int, curl: pycurl.Curl, *, ready: bool) -> str:
    """The name of failure `code`. `ready`: the connection stood and the request could be sent."""
    if code == pycurl.E_OPERATION_TIMEDOUT and not ready:
        return _stalled(curl)
    if code == pycurl.E_COULDNT_CONNECT:
        return _CONNECT.get(curl.getinfo(pycurl.OS_ERRNO), "unreachable")
    return _NAMES.get(code, "transport")


def _stalled(curl: pycurl.Curl) -> str:
    """What was under way when time ran out before the request was sent. Names were looked up before."""
    return "tls" if curl.getinfo(pycurl.CONNECT_TIME) else "connect_timeout"
