"""Work that is handed out comes back in its order."""

from __future__ import annotations

import threading

from tempa.engines.splat.raster.threads import each


def test_results_come_in_the_items_order() -> None:
    """The first item is done last: it waits for all others."""
    others = threading.Barrier(4)

    def work(item: int) -> int:
        others.wait(timeout=30)
        return item * item

    assert list(each(work, range(4), threads=4)) == [0, 1, 4, 9]


def test_one_item_starts_no_thread() -> None:
    assert each(lambda _: threading.get_ident(), range(1), threads=4) == [threading.get_ident()]
