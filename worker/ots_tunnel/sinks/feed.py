"""Feeds the changes of a page into a grouping as requests need them: a part of the page is held at a time.

The work of a round is bounded by the records that were looked at, not by the changes that were made of them: a record
whose cells are all past the time to live makes none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Generic

from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.grouping import C, Grouping, Limits
from ots_tunnel.sinks.slices import SLICE_BYTES, SLICE_RECORDS, Turns

#: Bytes of changes that are held at a time, those in requests under way included. Changes may take several times the
#: bytes of their records; the changes of a hot key wait in here, too.
HELD_BYTES = 4_194_304


def _has_room(grouping: Grouping[C], limits: Limits) -> bool:
    """Whether a grouping may get another slice: no full request is ready, and little is held."""
    return grouping.ready_rows < limits.max_rows and grouping.held_bytes < HELD_BYTES


class NotYetError(Exception):
    """The changes of a record cannot be made yet.

    Args:
        wait: returns when they can be.
    """

    def __init__(self, wait: Callable[[], Awaitable[None]]) -> None:
        super().__init__("the changes of a record cannot be made yet")
        self.wait = wait


class Feed(Generic[C]):
    """The changes of one batch on their way into a grouping.

    Args:
        records: in commit order.
        make: makes the changes of a record, in the order in which they have to be applied; called when they are
            needed. Where it raises `NotYetError` before the first one, it is called again after the wait.
        limits: most that one request may hold.
        turns: those of the sink.
    """

    def __init__(
        self,
        records: Iterable[Record],
        make: Callable[[Record], Iterable[C]],
        grouping: Grouping[C],
        limits: Limits,
        turns: Turns,
    ) -> None:
        self._turns = turns
        self._records = iter(records)
        #: The record whose changes could not be made yet.
        self._waiting: Record | None = None
        self._make = make
        self._grouping = grouping
        self._limits = limits
        self._begun = False
        self.is_empty = False

    def __repr__(self) -> str:
        return f"Feed({self._grouping!r}, empty={self.is_empty})"

    async def fill(self) -> None:
        """Add changes until a full request is ready or enough is held; the event loop runs between two slices.

        Raises:
            CodecError: a record is malformed. TunnelError: what a wait raised.
        """
        while not self.is_empty and _has_room(self._grouping, self._limits):
            if self._begun:
                await self._turns.next()
            self._begun = True
            try:
                self._add_slice()
            except NotYetError as not_yet:
                await not_yet.wait()

    def _add_slice(self) -> None:
        count = size = 0
        while count < SLICE_RECORDS and size < SLICE_BYTES:
            record = self._waiting or next(self._records, None)
            if record is None:
                self.is_empty = True
                return
            self._waiting = record
            for change in self._make(record):
                self._grouping.add(change)
            self._waiting = None
            count += 1
            size += record.size


class SliceFeed(Generic[C]):
    """The changes of one batch on their way into a grouping, for sinks that make one change of each record.

    A slice is made in one call, and its keys are compared at once.

    Args:
        records: in commit order.
        make: makes the changes of a slice: of at least one of the records, from a place on. They are as many as the
            records they are made of.
        limits: most that one request may hold.
        turns: those of the sink.
    """

    def __init__(
        self,
        records: Iterable[Record],
        make: Callable[[list[Record], int], Sequence[C]],
        grouping: Grouping[C],
        limits: Limits,
        turns: Turns,
    ) -> None:
        self._turns = turns
        self._records = list(records)
        self._made = 0
        self._make = make
        self._grouping = grouping
        self._limits = limits

    def __repr__(self) -> str:
        return f"SliceFeed({self._grouping!r}, {self._made} of {len(self._records)})"

    @property
    def is_empty(self) -> bool:
        """Whether the changes of all records are made."""
        return self._made == len(self._records)

    async def fill(self) -> None:
        """Add changes until a full request is ready or enough is held; the event loop runs between two slices.

        Raises:
            CodecError: a record is malformed.
        """
        while not self.is_empty and _has_room(self._grouping, self._limits):
            if self._made:
                await self._turns.next()
            changes = self._make(self._records, self._made)
            self._made += len(changes)
            self._grouping.extend(changes)
