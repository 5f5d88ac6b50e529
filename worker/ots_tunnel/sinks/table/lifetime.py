"""How long the destination keeps cells, and what that means for the changes of a page.

Theory of operation
-------------------

The service refuses a row with a cell past the table's time to live, so such cells are left out. That a cell is past it
depends on two things that change while a worker runs:

The time to live. An owner may raise it. A cell is left out for good, so the table is described again before that
(`check`), unless a description is known to be newer than the record and no older than `MAX_AGE`: a copy of old rows,
with expired cells on every page, costs one call a minute.

The clock. It is the service's, which each description tells (`service_clock`). A request may be sent again for hours
while the destination is busy, and its cells pass their time to live meanwhile. And an owner may lower the time to live.
So a refusal that may be due to a version is not taken as it is: `revise` describes the table, leaves out what is past
its time to live by now, and the rest of the row is sent again. Cells that are too young for any time to live to end are
refused for another reason, and cost no description.

Descriptions are numbered when they begin, and the numbers decide which of two things came first: clocks do not.

Example: at 12:00:00 the table is described, cells live for a day. At 12:00:30 both tables are raised to no end, and at
12:00:40 a page brings a change with a version of last week. The change is younger than the description, so the table is
described again, and the cell is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ots_tunnel.errors import ParameterInvalid
from ots_tunnel.protocol.record import Record
from ots_tunnel.protocol.service_codes import service_error
from ots_tunnel.sinks.feed import NotYetError
from ots_tunnel.sinks.grouping import Limits
from ots_tunnel.sinks.table.batch_write import Refusal
from ots_tunnel.sinks.table.row_change import (
    Change,
    Omissions,
    changes_of,
    expired_before_ms,
    has_expired,
    without_expired,
)
from ots_tunnel.sinks.table.service_clock import ServiceClock

#: Seconds for which a description is good enough for a record that is older than it.
MAX_AGE = 60.0

#: Seconds by which a record must be older than a description: the service's clock and this one may differ.
CLOCK_MARGIN = 60.0

#: Seconds between the beginnings of two descriptions: the service allows ten table calls a second per instance.
SPACING = 0.2

#: Seconds; the service accepts no shorter time to live. A younger cell is refused for another reason.
SHORTEST = 86_400


class Described(NamedTuple):
    """What a description tells: seconds, -1 means that cells never expire, and the service's time, if it tells one."""

    time_to_live: int
    service_time: float | None = None


@dataclass(frozen=True, slots=True)
class Revision:
    """A refused change, and what of it is sent again; None if nothing is left of it."""

    refusal: Refusal
    change: Change | None


class Lifetime:
    """The destination's time to live.

    Args:
        describe: asks the destination.
        clock: Unix seconds of this machine.
        omissions: counts what is left out.
    """

    def __init__(
        self, describe: Callable[[], Awaitable[Described]], clock: Callable[[], float], omissions: Omissions
    ) -> None:
        self._describe = describe
        self._clock = ServiceClock(clock)
        self._own_clock = clock
        self._omissions = omissions
        self._time_to_live = -1
        self._asked_at = float("-inf")
        self._answered_at = float("-inf")
        self._begun = 0
        self._known = 0
        self._turn = asyncio.Lock()
        self._next = float("-inf")

    def __repr__(self) -> str:
        return f"Lifetime({self._time_to_live} s)"

    @property
    def now(self) -> int:
        """A mark: descriptions that begin later have a higher number."""
        return self._begun

    @property
    def limit_ms(self) -> int | None:
        """The version below which cells are past their time to live, or are about to be; None if none ever is."""
        return expired_before_ms(self._time_to_live, self._clock())

    def changes(self, record: Record, limits: Limits, arrived: int) -> Iterator[Change]:
        """Make the changes of a record without expired cells.

        Args:
            arrived: mark of the time when the record came.

        Raises:
            NotYetError: the table has to be described again before a cell may be left out.
            CodecError: the record is malformed.
        """
        return changes_of(record, limits, self._omissions, self.limit_ms, lambda: self.check(record, arrived))

    def check(self, record: Record, arrived: int) -> None:
        """Refuse to leave out a cell by a description that may be older than it; arguments as in `changes`."""
        # since its answer: where each one takes longer than that, none would ever be young enough
        is_young = 0 <= self._own_clock() - self._answered_at < MAX_AGE
        if is_young and (self._known > arrived or _commit_time(record) <= self._asked_at - CLOCK_MARGIN):
            return
        since = max(arrived, self._known)  # a description that is too old does not serve, whatever the mark
        raise NotYetError(lambda: self.renew(since))

    async def renew(self, since: int) -> None:
        """Describe the table, unless that was begun after the mark `since`.

        Raises:
            SinkRejected, SinkError, ServiceError, TransportError: the table cannot be described.
        """
        async with self._turn:
            if self._known > since:
                return
            loop = asyncio.get_running_loop()
            await asyncio.sleep(max(0.0, self._next - loop.time()))
            self._next = loop.time() + SPACING
            self._begun += 1
            asked_at = self._own_clock()
            self._time_to_live, service_time = await self._describe()
            self._answered_at, self._known = self._own_clock(), self._begun
            self._clock.heard(service_time)
            # by the service's clock, as the times of commits are
            self._asked_at = self._clock() - (self._answered_at - asked_at)

    async def revise(self, refusals: Sequence[Refusal]) -> list[Revision]:
        """What is to be sent again of refused changes, now that some of their cells have expired.

        Raises:
            SinkRejected, SinkError, ServiceError, TransportError: see `renew`.
        """
        suspects = [refusal for refusal in refusals if self._may_be_expired(refusal)]
        if suspects:
            await self.renew(self.now)
        limit_ms = self.limit_ms
        if not suspects or limit_ms is None:
            return []
        changes = [(refusal, without_expired(refusal.change, limit_ms, self._omissions)) for refusal in suspects]
        return [Revision(refusal, change) for refusal, change in changes if change is not refusal.change]

    def _may_be_expired(self, refusal: Refusal) -> bool:
        """Whether any time to live that the destination may have got by now explains the refusal."""
        if not isinstance(service_error(refusal.code, refusal.message), ParameterInvalid):
            return False
        shortest = SHORTEST if self._time_to_live == -1 else min(SHORTEST, self._time_to_live)
        limit_ms = expired_before_ms(shortest, self._clock())
        return limit_ms is not None and has_expired(refusal.change, limit_ms)


async def nothing_to_revise(_: Sequence[Refusal]) -> list[Revision]:
    """Every refusal stands."""
    return []


def _commit_time(record: Record) -> float:
    """Unix seconds; before any other time for a row of a snapshot."""
    return float("-inf") if record.sequence is None else record.sequence.timestamp_us / 1e6
