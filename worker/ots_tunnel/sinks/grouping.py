"""Groups row changes into requests without breaking the order per key: bookkeeping, no input or output.

Theory of operation. Every change is in one of three places:

    waiting  ->  ready  ->  taken  ->  settled (forgotten)

- A key has at most one change that is ready or taken; its later changes wait in a queue. So no request holds a key
  twice, and no change overtakes an earlier one of its key, whatever fails in between.
- When a change is settled, the next one of its key goes to the front of the ready ones. So a hot key, with many changes
  in one page, does not delay the end of the page: its queue shrinks by one with every request.
- Every change is taken exactly once. A change that fails stays taken; the caller sends it again.

Example with requests of two rows: a1 b1 a2 c1 a3 (key and number) are added. Ready: a1 b1 c1; a2 and a3 wait. `take`
gives a1 b1. When both are settled, a2 goes to the front, and `take` gives a2 c1, later a3.

Source: docs/architecture.md 4.2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class Keyed(Protocol):
    """A change of one row."""

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
    """Most that one request and one row change may hold (docs/data-plane.md 2.2)."""

    max_rows: int = 200
    """Row changes per request; the service's maximum is 200."""
    max_bytes: int = 4_000_000
    """Bytes per request; the service allows 4194304, which it counts without the wire's overhead."""
    max_cells: int = 1024
    """Attribute cells per row change; the service's maximum is 1024."""


class Grouping(Generic[C]):
    """Row changes on their way into requests."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._ready: deque[C] = deque()
        #: Keys with a change that is ready or taken, each with the queue of its later changes; None for no queue.
        self._followers: dict[Hashable, deque[C] | None] = {}
        self._held_rows = 0
        self._held_bytes = 0
        #: Bytes of the ready ones.
        self._ready_bytes = 0

    def __repr__(self) -> str:
        return f"Grouping({len(self._ready)} ready, {self._held_rows} held, {len(self._followers)} keys)"

    @property
    def held_rows(self) -> int:
        """Number of changes that are not settled."""
        return self._held_rows

    @property
    def held_bytes(self) -> int:
        """Bytes of the changes that are not settled."""
        return self._held_bytes

    @property
    def ready_rows(self) -> int:
        """Number of changes that may be taken now."""
        return len(self._ready)

    def add(self, change: C) -> None:
        """Append a change; changes of one key are added in commit order."""
        self._held_rows += 1
        self._held_bytes += change.size
        if change.key not in self._followers:
            self._followers[change.key] = None
            self._ready.append(change)
            self._ready_bytes += change.size
            return
        queue = self._followers[change.key]
        if queue is None:
            queue = self._followers[change.key] = deque()
        queue.append(change)

    def extend(self, changes: Sequence[C]) -> None:
        """Append changes, as `add` does one after the other; faster where their keys are new and all different."""
        keys = [change.key for change in changes]
        if len(set(keys)) != len(keys) or not self._followers.keys().isdisjoint(keys):
            for change in changes:
                self.add(change)
            return
        size = sum([change.size for change in changes])
        self._held_rows += len(changes)
        self._held_bytes += size
        self._ready_bytes += size
        self._followers.update(dict.fromkeys(keys))
        self._ready.extend(changes)

    def take(self) -> tuple[C, ...]:
        """Take the changes of the next request, all of different keys; empty while none is ready.

        A change that is larger than a request is taken alone.
        """
        ready, most = self._ready, self._limits.max_bytes
        rows = min(len(ready), self._limits.max_rows)
        if self._ready_bytes > most:
            size = ready[0].size
            rows = next((row for row in range(1, rows) if (size := size + ready[row].size) > most), rows)
        taken = tuple([ready.popleft() for _ in range(rows)])
        self._ready_bytes -= sum([change.size for change in taken])
        return taken

    def settle(self, changes: Iterable[C]) -> None:
        """Forget taken changes; the next change of each of their keys becomes ready.

        Raises:
            KeyError: a change was not taken.
        """
        followers, rows, size = self._followers, 0, 0
        for change in changes:
            rows += 1
            size += change.size
            queue = followers[change.key]
            if queue:
                follower = queue.popleft()
                self._ready.appendleft(follower)
                self._ready_bytes += follower.size
            else:
                del followers[change.key]
        self._held_rows -= rows
        self._held_bytes -= size
