"""Where a table is cut: between partition keys, so that rows which share the first key column always stay together.

Example: of the rows ``(a, 1), (b, 1), (b, 2), (b, 3)`` the middle is ``(b, 2)``, and the cut nearest to it is ``(b,)``.

Source: docs/data-plane.md 2.6.
"""

from __future__ import annotations

from ots_emulator.tables.keys import TOP, Key
from ots_emulator.tables.rows import Rows


def quantiles(rows: Rows, parts: int) -> list[Key]:
    """Return up to `parts` - 1 existing partition keys that cut the rows into parts as equal as these keys allow."""
    # More parts than rows find no more cuts, but take their time.
    parts = min(parts, max(len(rows), 1))
    cuts = dict.fromkeys(rows.key_at(len(rows) * part // parts)[:1] for part in range(1, parts))
    return [cut for cut in cuts if rows.index(cut)]


def middle(rows: Rows, first: int, last: int) -> Key | None:
    """Return the partition key nearest to the middle of the rows from rank `first` to before `last`; None without two.

    The rows before it are at least one, and so are those from it on.
    """
    if last - first < 2:
        return None
    aim = (first + last) // 2
    key = rows.key_at(aim)[:1]
    begin, end = rows.index(key), rows.index((*key, TOP))
    if begin > first and (end >= last or aim - begin <= end - aim):
        return key
    return rows.key_at(end)[:1] if end < last else None
