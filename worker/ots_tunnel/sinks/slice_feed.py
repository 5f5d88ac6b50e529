"""Feeds what is made of a page's records into a grouping, a slice at a time, as requests need it.

It is `feed` for sinks that make one change of each record: a slice is made in one call, and its keys are compared at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic

from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.feed import has_room
from ots_tunnel.sinks.grouping import C, Grouping, Limits
from ots_tunnel.sinks.slices import Turns


class SliceFeed(Generic[C]):
    """The changes of one batch on their way into a grouping.

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
        while not self.is_empty and has_room(self._grouping, self._limits):
            if self._made:
                await self._turns.next()
            changes = self._make(self._records, self._made)
            self._made += len(changes)
            self._grouping.extend(changes)
