"""How many files and sockets the process may have open, and how many of them connections may take."""

from __future__ import annotations

import resource

# Some containers say a thousand million, and programs we start may close as many one by one.
_MOST = 1 << 20
_KEPT_BACK = 256  # the store's readers, kernels and their pipes, the log


def raise_limit() -> int:
    """Raise the soft limit to the hard one; what it is then.

    The soft one is 1,024 nearly everywhere, for the sake of programs that call `select`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return _MOST if soft == resource.RLIM_INFINITY else soft


def connections_within(files: int, wanted: int, deliveries: int) -> int:
    """How many connections may be open beside `deliveries` at once, where `files` may be open in all.

    Each may need a file beside its socket, to read or to write; a delivery's connection is kept warm for
    a while after it. Where few files may be open, deliveries get by with what an eighth leaves them.
    """
    left = files - _KEPT_BACK - deliveries - deliveries // 2
    return max(1, min(wanted, max(left // 2, files // 8)))
