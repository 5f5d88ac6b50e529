"""Which row changes may go into one request: pure bookkeeping of keys (docs/architecture.md 4.2).

The rules that hold here:
- a key has at most one change that is ready or taken; its later ones wait until that one is settled, so no request
  holds a key twice and no change overtakes another one of its key, whatever fails in between;
- followers of a settled key go first, so a hot key does not hold up the end of a page;
- nothing is dropped: what was added is taken exactly once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class Keyed(Protocol):
    """What can be grouped: something that changes one row."""

    @property
    def key(self) -> Hashable:
        """Identity of the row."""
        ...

    @property
    def size(self) -> int:
        """Bytes it takes in a request."""
        ...


C = TypeVar("C", bound=Keyed)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one request and one row change may hold (docs/data-plane.md 2.2)."""

    max_rows: int = 200
    """Row changes per request; the service's maximum is 200."""
    max_bytes: int = 4_000_000
    """Bytes per request; the service's maximum is 4194304 by a smaller measure than the wire's."""
    max_cells: int = 1024
    """Attribute cells per row change; the service's maximum is 1024."""


class Grouping(Generic[C]):
    """Row changes on their way into requests."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._ready: deque[C] = deque()
        #: A key that is here has a change ready or taken; its queue holds those that come after it.
        self._followers: dict[Hashable, deque[C] | None] = {}
        self._held_rows = 0
        self._held_bytes = 0

    def __repr__(self) -> str:
        return f"Grouping({len(self._ready)} ready, {self._held_rows} held, {len(self._followers)} keys)"

    @property
    def held_rows(self) -> int:
        """Changes that are not settled."""
        return self._held_rows

    @property
    def held_bytes(self) -> int:
        """Bytes of the changes that are not settled."""
        return self._held_bytes

    @property
    def ready_rows(self) -> int:
        """Changes that may be taken now."""
        return len(self._ready)

    def add(self, change: C) -> None:
        """Append a change; changes of one key are added in the order in which they happened."""
        self._held_rows += 1
        self._held_bytes += change.size
        if change.key not in self._followers:
            self._followers[change.key] = None
            self._ready.append(change)
            return
        queue = self._followers[change.key]
        if queue is None:
            queue = self._followers[change.key] = deque()
        queue.append(change)

    def take(self) -> tuple[C, ...]:
        """The changes of the next request, all of different keys; empty while nothing is ready.

        A change that is larger than a request is taken alone.
        """
        taken: list[C] = []
        size = 0
        while self._ready and len(taken) < self._limits.max_rows:
            size += self._ready[0].size
            if taken and size > self._limits.max_bytes:
                break
            taken.append(self._ready.popleft())
        return tuple(taken)

    def settle(self, changes: Iterable[C]) -> None:
        """Forget taken changes that are stored; the next change of each of their keys becomes ready.

        Raises:
            KeyError: a change was not taken.
        """
        for change in changes:
            self._held_rows -= 1
            self._held_bytes -= change.size
            queue = self._followers[change.key]
            if queue:
                self._ready.appendleft(queue.popleft())
            else:
                del self._followers[change.key]
