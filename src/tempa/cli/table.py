"""Tables for people. Nothing is ever cut: an id that lost its end cannot be pasted anywhere."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_GAP = "  "
_FOLD_CELLS_MIN = 20  # a column narrower than that is harder to read than a line that overflows


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], empty: str) -> None:
    """A table; `empty` if it has no rows. The last column is folded between words where it must be."""
    shown = [[on_one_line(value) for value in row] for row in rows]
    if not shown:
        print(empty)
        return
    print("\n".join(table_lines(columns, shown, shutil.get_terminal_size().columns)))


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]], width_cells: int) -> list[str]:
    """The table's lines for a terminal of that width; wider where the columns but the last need it."""
    from rich.cells import cell_len

    widths = [max(cell_len(row[at]) for row in (columns, *rows)) for at in range(len(columns))]
    leading = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
    room = width_cells - leading
    widths[-1] = min(widths[-1], room) if room >= _FOLD_CELLS_MIN else widths[-1]
    rule = _GAP.join("-" * width for width in widths)
    return [*_row_lines(columns, widths), rule, *(line for row in rows for line in _row_lines(row, widths))]


def _row_lines(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    from rich.cells import set_cell_size

    *leading, last = row
    parts = textwrap.wrap(
        last, max(1, widths[-1]), break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    )
    head = "".join(set_cell_size(cell, width) + _GAP for cell, width in zip(leading, widths, strict=False))
    indent = " " * (sum(widths[:-1]) + len(_GAP) * len(leading))
    first, *rest = parts or [""]
    return [(head + first).rstrip(), *(indent + part for part in rest)]


def on_one_line(value: Any) -> str:
    """On one line, and nothing in it that would steer the terminal."""
    text = "" if value is None else str(value)
    return "".join(character if character.isprintable() else "?" for character in text)
