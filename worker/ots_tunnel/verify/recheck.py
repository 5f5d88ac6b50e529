"""Recheck of differing rows: while a copy is followed, only lasting differences count (docs/architecture.md 4.5)."""

from __future__ import annotations

from collections.abc import Sequence

from ots_tunnel.client.table_calls import KeyRange
from ots_tunnel.model import KeyValue, Marker, PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import decode_key_cells
from ots_tunnel.protocol.plainbuffer.spans import RowSpan
from ots_tunnel.verify.comparison import Comparison, Difference
from ots_tunnel.verify.rows import RowDifferences
from ots_tunnel.verify.scan import OnDifference, record_in

#: Up to this number of rows, each is read by its own call; for more rows one scan over all of them is cheaper. Own
#: choice.
READ_ONE_BY_ONE = 16

#: Suspects of one slice that are remembered; at this number they are rechecked before the slice is read on. At up to
#: 4 KiB a key, 40 MB.
MOST_SUSPECTS = 10_000

#: Most bytes of a string or binary key value, and of a bound (docs/data-plane.md 2.2).
LONGEST_KEY_VALUE = 1024

#: Integers are signed and have 64 bits.
_INTEGER_MAX = (1 << 63) - 1


class Suspects:
    """Keys of the rows of one slice that differed at the first look, in key order."""

    def __init__(self) -> None:
        self._keys: list[bytes] = []

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def differs(self) -> OnDifference:
        """A callback that remembers differing rows."""

        def remember(_: Difference, first: RowSpan | None, second: RowSpan | None, __: RowDifferences) -> None:
            row = first or second
            assert row is not None
            self._keys.append(row.key)

        return remember

    def take(self) -> tuple[bytes, ...]:
        """Return all keys and forget them."""
        keys, self._keys = tuple(self._keys), []
        return keys


def ranges_of(keys: Sequence[bytes]) -> list[KeyRange]:
    """Ranges that hold these rows; `keys` are in ascending order."""
    found = [decode_key_cells(key) for key in keys]
    if len(found) > READ_ONE_BY_ONE:
        return [span(found[0], found[-1])]
    return [span(key, key) for key in found]


def span(first: PrimaryKey, last: PrimaryKey) -> KeyRange:
    """The range from one stored key to another, including both.

    If no bound directly after `last` exists, the range is larger and ends at INF_MAX of the last key column.
    """
    name, value = last[-1]
    return KeyRange(first, (*last[:-1], (name, _following(value))))


def _following(value: KeyValue) -> KeyValue:
    """The smallest value above a stored one; INF_MAX if the service has no such value."""
    match value:
        case int() if value < _INTEGER_MAX:
            return value + 1
        case str() if len(value.encode()) < LONGEST_KEY_VALUE:
            return value + "\0"
        case bytes() if len(value) < LONGEST_KEY_VALUE:
            return value + b"\0"
        case _:
            return Marker.INF_MAX


class Recheck:
    """Counts the suspects that differ again.

    Args:
        keys: the suspects.
        result: counts and first differences of the slice; suspects that are equal now count as settled.
    """

    def __init__(self, keys: Sequence[bytes], result: Comparison) -> None:
        self._left = set(keys)
        self._record = record_in(result)
        self._result = result

    def differs(
        self, kind: Difference, first: RowSpan | None, second: RowSpan | None, differences: RowDifferences
    ) -> None:
        """Count a differing row if it is a suspect; other rows changed a moment ago."""
        row = first or second
        assert row is not None
        if row.key in self._left:
            self._left.discard(row.key)
            self._record(kind, first, second, differences)

    def end(self) -> None:
        """Count the other suspects as settled; call it after all ranges have been read."""
        self._result.settled += len(self._left)
