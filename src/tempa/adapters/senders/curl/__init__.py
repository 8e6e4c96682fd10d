"""The outbound HTTP transport of the server, on libcurl.

`sender` is the asyncio side, `multi` the thread that drives libcurl, `easy` one transfer's options,
`exchange` what comes back, `errors` the names of what goes wrong.
"""

from tempa.adapters.senders.curl.sender import CurlSender

__all__ = ["CurlSender"]
