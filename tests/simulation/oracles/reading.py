"""What one reader has read: changes, matched with what it writes, and pages, matched with its checkpoints.

Both oracles of the data path judge by it: `delivery` where channels of a tunnel are read, `leases.sharing` where shards
are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tests.support.ledger import Change

Place = TypeVar("Place")


@dataclass(slots=True)
class ReadChanges:
    """Per key the changes in the order of reading, and how many of them are written."""

    #: Per key: (action, number that the row shows, number).
    _changes: dict[str, list[tuple[str, int, int]]] = field(default_factory=dict)
    _written: Counter[str] = field(default_factory=Counter)

    def add(self, key: str, action: str, shown: int, number: int) -> None:
        """A change was read."""
        self._changes.setdefault(key, []).append((action, shown, number))

    def forget(self, key: str, count: int = 1) -> None:
        """The last changes of a key are read again."""
        del self._changes[key][-count:]

    def is_written(self, key: str, count: int) -> bool:
        """Whether one of the last changes of a key is written."""
        return self._written[key] > len(self._changes[key]) - count

    def match(self, change: Change) -> tuple[int, bool] | None:
        """The number of a change that is written now, and whether it is again the last one; None out of order."""
        key, shown = change[0], change[1:]
        changes, written = self._changes[key], self._written[key]
        if written < len(changes) and changes[written][:2] == shown:
            self._written[key] += 1
            return changes[written][2], False
        if written and changes[written - 1][:2] == shown:
            return changes[written - 1][2], True
        return None

    def near(self, key: str) -> list[tuple[str, int, int]]:
        """The changes of a key around those that could be written next."""
        written = self._written[key]
        return self._changes[key][max(0, written - 1) : written + 2]


@dataclass(slots=True)
class ReadPages(Generic[Place]):
    """Pages behind the stored checkpoint: the place behind each, and its changes (key, number)."""

    _pages: list[tuple[Place, list[tuple[str, int]]]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._pages)

    def add(self, following: Place, taken: list[tuple[str, int]]) -> None:
        """A page was read."""
        self._pages.append((following, taken))

    def pop(self) -> list[tuple[str, int]]:
        """Forget the last page; returns its changes."""
        return self._pages.pop()[1]

    def ending(self, back: int) -> Place:
        """The place behind a page, counted from the last one, which is 1."""
        return self._pages[-back][0]

    def store(self, place: Place, present: Callable[[str], int]) -> tuple[str, int] | bool:
        """A checkpoint is stored: forget the pages before it.

        Args:
            present: number of the last change of a key that is in effect.

        Returns:
            The first change before it that is not in effect; otherwise whether a page ends there.
        """
        for count, (following, taken) in enumerate(self._pages, 1):
            for key, number in taken:
                if present(key) < number:
                    return key, number
            if following == place:
                self._pages = self._pages[count:]
                return True
        return False
