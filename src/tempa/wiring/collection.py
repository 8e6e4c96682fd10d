"""How often Python looks for garbage that reference counts cannot free, in a process that serves."""

from __future__ import annotations

import gc

# Python looks after every 700 new objects, and with many deliveries on their way that is nearly all of the
# time and in vain; the 300,000 objects of what was imported it walks through every now and then. That took a
# tenth of a delivery's CPU. Garbage in cycles, such as a traceback's, is still found among the 10,000 latest,
# and what survives is looked at again in every tenth round, as by default.
_YOUNG, _OLDER = 10_000, 10


def settle_down() -> None:
    """Once all is imported and opened: that stays for good, and is never looked through again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _OLDER, _OLDER)
