"""The rows of one table in key order, as images that are served without parsing them.

Versions beyond the maximum are never stored. The first call after a cell's expiry removes the cell, so it is gone for
all readers at once, and reads need not check for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count, tee
from typing import Final

from sortedcontainers import SortedDict

from ots_emulator.tables.cells import Cell, build_image, cells_of, has_versions, newest, scan_image
from ots_emulator.tables.expiry import ExpiryQueue
from ots_emulator.tables.keys import Key
from ots_tunnel.protocol.plainbuffer.spans import RowSpan

_REVISIONS: Final = count(1)
#: The expiry queue is rebuilt when it has more than twice as many dates as there are rows, and this many more.
_SLACK: Final = 1000

#: Receives a stored row and whether some column has several versions; without an image, a removed row.
RowListener = Callable[[Key, bytes | None, bool], None]


class Rows:
    """Rows with their images.

    Args:
        time_to_live: seconds, -1 is without end.
        listener: receives every change.
    """

    def __init__(self, time_to_live: int, listener: RowListener) -> None:
        self.size_bytes = 0
        self._removed_bytes = 0
        self._listener = listener
        self._images: SortedDict[Key, bytes] = SortedDict()
        # Rows with more than one version of some column; all others are served as they are.
        self._versioned: set[Key] = set()
        self._revision = 0
        self._start_expiry(time_to_live)

    def __repr__(self) -> str:
        return f"Rows({len(self)} rows, {self.size_bytes} bytes)"

    def __len__(self) -> int:
        return len(self._images)

    @property
    def revision(self) -> int:
        """A number for the current content of the rows; no other content, of any table, ever has it."""
        if not self._revision:
            self._revision = next(_REVISIONS)
        return self._revision

    def get(self, key: Key) -> bytes | None:
        """Return the image of a row, None when there is none."""
        image: bytes | None = self._images.get(key)
        return image

    def scan(self, start: Key, end: Key, *, backward: bool = False) -> Iterator[tuple[Key, bytes]]:
        """Iterate over rows from `start` (inclusive) to `end` (exclusive); `backward` from high to low keys."""
        images = self._images
        if backward:
            keys = images.irange(end, start, inclusive=(False, True), reverse=True)
        else:
            keys = images.irange(start, end, inclusive=(True, False))
        # A generator would double the cost of a scan.
        keys, same = tee(keys)
        return zip(keys, map(images.__getitem__, same), strict=True)

    def single_versions(self, key: Key) -> bool:
        """Whether no column of this row has more than one version."""
        return key not in self._versioned

    # Positions

    def index(self, bound: Key) -> int:
        """Return how many rows sort before a bound."""
        return int(self._images.bisect_left(bound))

    def key_at(self, index: int) -> Key:
        """Return the key at a rank (0 is the lowest)."""
        key: Key = self._images.keys()[index]
        return key

    # Changing

    def store(self, key: Key, image: bytes, *, versioned: bool) -> None:
        """Store a row; `versioned` is whether some column has more than one version."""
        images = self._images
        old = images.get(key)
        images[key] = image
        self.size_bytes += len(image) - (0 if old is None else len(old))
        if versioned:
            self._versioned.add(key)
        elif self._versioned:
            self._versioned.discard(key)
        self._revision = 0
        if self._expiry is not None:
            self._queue_expiry(key, image, old)
        self._listener(key, image, versioned)

    def remove(self, key: Key) -> None:
        """Remove a row; a missing one is ignored."""
        self._take_out(key)
        self._forget_dates()

    def _take_out(self, key: Key) -> None:
        image = self._images.pop(key, None)
        if image is None:
            return
        self.size_bytes -= len(image)
        self._removed_bytes += len(image)
        self._versioned.discard(key)
        self._revision = 0
        self._listener(key, None, False)

    def take_removed(self) -> int:
        """Return the bytes of the rows that were removed since the last call."""
        removed, self._removed_bytes = self._removed_bytes, 0
        return removed

    def load(self, rows: Iterable[tuple[Key, bytes, bool]]) -> None:
        """Load rows in any order, each with whether some column has several versions; the listener is not called."""
        images = {}
        for key, image, versioned in rows:
            images[key] = image
            if versioned:
                self._versioned.add(key)
        # Sorted once, not with every row.
        self._images.update(images)
        self.size_bytes = sum(map(len, self._images.values()))
        self._revision = 0
        self._start_expiry(self._time_to_live)

    def copy_to(self, copy: Rows, start: Key, end: Key) -> None:
        """Load the rows from `start` (inclusive) to `end` (exclusive) into another table's."""
        copy.load((key, image, key in self._versioned) for key, image in self.scan(start, end))

    def keep_newest(self, max_versions: int) -> None:
        """Remove the versions beyond a maximum."""
        for key in list(self._versioned):
            span = scan_image(self._images[key])
            kept = newest(cells_of(span), max_versions)
            self.store(key, build_image(span, kept), versioned=has_versions(kept))

    # Expiring

    def expire(self, now_ms: int) -> None:
        """Remove cells older than the time to live, and rows that lose their last cell."""
        if self._expiry is None:
            return
        oldest_ms = now_ms - self._time_to_live * 1000
        for key in self._expiry.take(oldest_ms):
            image = self._images.get(key)
            if image is None:
                continue
            span = scan_image(image)
            cells = cells_of(span)
            alive = [cell for cell in cells if cell.timestamp_ms >= oldest_ms]
            if alive:
                self._expiry.add(min(cell.timestamp_ms for cell in alive), key)
            if len(alive) < len(cells):
                self._replace(key, span, alive)

    def _replace(self, key: Key, span: RowSpan, alive: list[Cell]) -> None:
        if alive:
            self.store(key, build_image(span, alive), versioned=has_versions(alive))
        else:
            # Its date has left the queue, which is being read.
            self._take_out(key)

    @property
    def expiry_dates(self) -> int:
        """Number of stored dates to find expired rows; 0 without a time to live."""
        return 0 if self._expiry is None else len(self._expiry)

    def change_time_to_live(self, time_to_live: int) -> None:
        """Set the time to live in seconds; cells that have expired before must have been removed."""
        if time_to_live != self._time_to_live:
            self._start_expiry(time_to_live)

    def _start_expiry(self, time_to_live: int) -> None:
        self._time_to_live = time_to_live
        self._expiry = None if time_to_live < 0 else ExpiryQueue(self._dates())

    def _dates(self) -> Iterator[tuple[int, Key]]:
        for key, image in self._images.items():
            oldest_ms = _oldest_ms(image)
            if oldest_ms is not None:
                yield oldest_ms, key

    def _queue_expiry(self, key: Key, image: bytes, old: bytes | None) -> None:
        """Queue a row for expiry unless its former cells did; a row without cells never expires."""
        assert self._expiry is not None
        oldest_ms = _oldest_ms(image)
        known_ms = None if old is None else _oldest_ms(old)
        if oldest_ms is not None and (known_ms is None or oldest_ms < known_ms):
            self._expiry.add(oldest_ms, key)
            self._forget_dates()

    def _forget_dates(self) -> None:
        """Rebuild the queue where most of its dates are of rows that are gone or were written again."""
        if self._expiry is not None and len(self._expiry) > 2 * len(self) + _SLACK:
            self._expiry = ExpiryQueue(self._dates())


def _oldest_ms(image: bytes) -> int | None:
    """Return the time of a row's oldest cell, None for a row without cells."""
    return min((cell.timestamp_ms or 0 for cell in scan_image(image).cells), default=None)
