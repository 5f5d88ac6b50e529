"""Where a table is cut: between partition keys, so that rows which share the first key column always stay together.

Example: of the rows ``(a, 1), (b, 1), (b, 2), (b, 3)`` the middle is ``(b, 2)``, and the cut nearest to it is ``(b,)``.

Source: docs/data-plane.md 2.6.
"""

from __future__ import annotations

import reprlib
from typing import Any, Final

from ots_emulator.refusal import parameter_invalid
from ots_emulator.tables.keys import INT_MAX, TOP, Key, KeySchema
from ots_emulator.tables.rows import Rows
from ots_emulator.tables.sent_keys import KEY_VALUE_BYTES, is_text
from ots_tunnel.model import KeyType

_ALLOWED: Final = {
    KeyType.INTEGER: "an integer of 64 bits",
    KeyType.STRING: f"text in UTF-8 as bytes, at most {KEY_VALUE_BYTES}",
    KeyType.BINARY: f"bytes, at most {KEY_VALUE_BYTES}",
}


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


def check_split_key(schema: KeySchema, key: Key) -> None:
    """Refuse a key at which no table of a schema can be split.

    Raises:
        Refusal: it has more or less than the partition key, or a value that its column cannot have.
    """
    if not isinstance(key, tuple) or len(key) != 1:
        raise parameter_invalid(f"split key: found {reprlib.repr(key)}, allowed is a value of the partition key alone")
    column, value = schema.columns[0], key[0]
    if not _fits(value, column.type):
        size = f" of {len(value)} bytes" if isinstance(value, bytes) and len(value) > KEY_VALUE_BYTES else ""
        raise parameter_invalid(
            f"split key, {column.name!r}: found {reprlib.repr(value)}{size}, allowed is {_ALLOWED[column.type]}"
        )


def _fits(value: Any, kind: KeyType) -> bool:
    if kind is KeyType.INTEGER:
        return isinstance(value, int) and not isinstance(value, bool) and -INT_MAX - 1 <= value <= INT_MAX
    if not isinstance(value, bytes) or len(value) > KEY_VALUE_BYTES:
        return False
    return kind is KeyType.BINARY or is_text(value)
