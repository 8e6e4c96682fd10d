"""Whether a stream of slots is whole: each new one builds on one that was told of before."""

from __future__ import annotations

from collections import OrderedDict

SLOTS_KEPT = 1024  # forks are far shorter: under tower 32 slots are final


class SlotChain:
    """The newest slots that a subscription told of.

    Leaders skip slots, so numbers may jump; but a slot names its parent, and a parent that nobody told of
    was lost on the way, with whatever else was told meanwhile.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[int, None] = OrderedDict()

    def follows(self, slot: int, parent: int | None) -> bool:
        """Take note of a slot; False if its parent was never told of. The first follows on anything."""
        is_whole = not self._seen or parent is None or parent in self._seen
        self._seen[slot] = None
        if len(self._seen) > SLOTS_KEPT:
            self._seen.popitem(last=False)
        return is_whole
