"""Second look at differing rows: beside a running copy only a lasting difference counts (docs/architecture.md 4.5)."""

from __future__ import annotations

from collections.abc import Sequence

from ots_tunnel.client.table_calls import KeyRange
from ots_tunnel.model import KeyValue, Marker, PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import decode_key_cells
from ots_tunnel.protocol.plainbuffer.spans import RowSpan
from ots_tunnel.verify.comparison import Comparison, Difference
from ots_tunnel.verify.rows import RowDifferences
from ots_tunnel.verify.scan import OnDifference, record_in

#: Up to so many rows of a slice are read one by one; beyond it one scan over all of them is cheaper.
READ_ONE_BY_ONE = 16

#: Rows of one slice that are remembered; when there are more the slice waits until these are settled.
MOST_SUSPECTS = 10_000

#: Bytes a text or binary key column may hold (docs/data-plane.md 2.4); a bound cannot be longer either.
LONGEST_KEY_VALUE = 1024

#: Key integers are signed, of 64 bits.
_INTEGER_MAX = (1 << 63) - 1


class Suspects:
    """Rows of one slice that differed at first sight, in key order."""

    def __init__(self) -> None:
        self._keys: list[bytes] = []

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def differs(self) -> OnDifference:
        """Remembers the rows it is told of."""

        def remember(_: Difference, first: RowSpan | None, second: RowSpan | None, __: RowDifferences) -> None:
            row = first or second
            assert row is not None
            self._keys.append(row.key)

        return remember

    def take(self) -> tuple[bytes, ...]:
        """All of them; none is left."""
        keys, self._keys = tuple(self._keys), []
        return keys


def ranges_of(keys: Sequence[bytes]) -> list[KeyRange]:
    """What to read in order to see these rows again; `keys` ascend."""
    found = [decode_key_cells(key) for key in keys]
    if len(found) > READ_ONE_BY_ONE:
        return [span(found[0], found[-1])]
    return [span(key, key) for key in found]


def span(first: PrimaryKey, last: PrimaryKey) -> KeyRange:
    """The range from one stored key to another, both inside it.

    It may hold more where a bound right behind `last` cannot be written.
    """
    name, value = last[-1]
    return KeyRange(first, (*last[:-1], (name, _following(value))))


def _following(value: KeyValue) -> KeyValue:
    """The least value above a stored one; INF_MAX where that cannot be written."""
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
    """Counts those of the suspects that differ again.

    Args:
        keys: the suspects.
        result: counts and first differences of the slice; rows that are equal by now are counted as settled.
    """

    def __init__(self, keys: Sequence[bytes], result: Comparison) -> None:
        self._left = set(keys)
        self._record = record_in(result)
        self._result = result

    def differs(
        self, kind: Difference, first: RowSpan | None, second: RowSpan | None, differences: RowDifferences
    ) -> None:
        """Told of every row that differs now; only suspects count, others changed a moment ago."""
        row = first or second
        assert row is not None
        if row.key in self._left:
            self._left.discard(row.key)
            self._record(kind, first, second, differences)

    def end(self) -> None:
        """All ranges have been read."""
        self._result.settled += len(self._left)
