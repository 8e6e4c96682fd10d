"""The hostile receiver of `tempa.testing` in a process of its own."""

from __future__ import annotations

import sys

from bench.told import say
from bench.webhooks.cores import RECEIVER, pin
from tempa.testing.receiver import Receiver

if __name__ == "__main__":
    pin(RECEIVER)
    with Receiver() as receiver:
        say({"url": receiver.url("")})
        sys.stdin.read()
