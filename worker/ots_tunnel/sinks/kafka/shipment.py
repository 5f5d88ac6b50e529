"""The records of one batch on their way into a topic: bookkeeping without input or output.

Theory of operation. A parcel is one record and its state:

    waiting -> under way -> confirmed    `portion`, then `confirmed`: the next record of its key becomes ready
                         -> failed       `failed`: it is handed out again, before all others, after `resume`
                         -> refused      `failed` with a verdict that no try can succeed

- A key has at most one record under way, so a later one never overtakes it, whatever fails (`grouping`).
- After a failure nothing is handed out until everything under way has ended; then the failed parcels go first. A
  broker may have stored them already, and a record that is stored twice must not have a later one in between.
- After a refusal nothing is handed out until the caller dismisses it.

Example: a, b and a' (the next record of a's key). `portion` is (a, b). b is confirmed, a fails. `portion` is empty; the
shipment is stuck. After `resume`, `portion` is (a); when a is confirmed, `portion` is (a').
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.feed import SliceFeed
from ots_tunnel.sinks.grouping import Grouping, Limits
from ots_tunnel.sinks.kafka.failures import NO_PLACE, Failure, Verdict, is_about_one_record, verdict
from ots_tunnel.sinks.kafka.places import Places
from ots_tunnel.sinks.kafka.reports import failure_of
from ots_tunnel.sinks.slices import SLICE_RECORDS, Turns

#: The most that is handed out at a time, about two milliseconds of work; the event loop runs in between.
PORTION = Limits(max_rows=250, max_bytes=1 << 20)
#: Bytes of the records that become parcels at a time, which costs nothing per byte; it bounds what is ready at once.
PARCELS_BYTES = 262_144


@dataclass(slots=True, eq=False)
class Parcel:
    """One record on its way into the topic, and what librdkafka calls with the report about its message.

    Args:
        key: identity of the row.
        size: bytes of the record as it came.
        kept: gets the parcel with each report.
        places: judges the reports.
        alone: no other message may be in its request.
        failure: what the last report said; None when all replicas in sync have the message.
    """

    record: Record = field(repr=False)
    key: bytes = field(repr=False)
    size: int
    kept: deque[Parcel] = field(repr=False)
    places: Places = field(repr=False)
    alone: bool = False
    failure: Failure | None = None

    def __call__(self, error: Any, message: Any) -> None:
        """Take librdkafka's report, on any thread."""
        if error is not None:
            self.failure = failure_of(error)
        else:
            self.failure = None if self.places.has_one(message, alone=self.alone) else NO_PLACE
        self.kept.append(self)

    def refused(self, failure: Failure) -> None:
        """Take that the client itself refuses the message."""
        self.failure = failure
        self.kept.append(self)


def _parcels(kept: deque[Parcel], places: Places, records: list[Record], first: int) -> list[Parcel]:
    made: list[Parcel] = []
    size = 0
    for record in records[first : first + SLICE_RECORDS]:
        parcel = Parcel(record, record.key, record.size, kept, places)
        made.append(parcel)
        size += parcel.size
        if size >= PARCELS_BYTES:
            break
    return made


class Shipment:
    """The parcels of one batch.

    Args:
        records: in commit order.
        turns: those of the sink; None for a single channel.
        kept: gets the parcels that are reported.
        places: those of the sink.
    """

    def __init__(
        self,
        records: Iterable[Record],
        turns: Turns | None = None,
        kept: deque[Parcel] | None = None,
        places: Places | None = None,
    ) -> None:
        make = partial(_parcels, deque() if kept is None else kept, places or Places())
        self._grouping: Grouping[Parcel] = Grouping(PORTION)
        self._feed: SliceFeed[Parcel] = SliceFeed(records, make, self._grouping, PORTION, turns or Turns())
        self._under_way = 0
        self._failed: list[Parcel] = []
        self._again: list[Parcel] = []
        self.refused: list[tuple[Parcel, Failure]] = []
        #: Failures since the last `resume`.
        self.failures: list[Failure] = []

    def __repr__(self) -> str:
        return f"Shipment({self._under_way} under way, {self._grouping.held_rows} left)"

    @property
    def is_done(self) -> bool:
        """Whether every record is confirmed."""
        return self._feed.is_empty and self._grouping.held_rows == 0

    @property
    def is_stuck(self) -> bool:
        """Whether a parcel failed or was refused and no parcel is under way."""
        return self._under_way == 0 and bool(self._failed or self.refused)

    @property
    def goes_on(self) -> bool:
        """Whether another portion may follow without a report."""
        if self._again:
            return not self._waits_for_single_ones
        return self._grouping.ready_rows > 0 or not self._feed.is_empty

    @property
    def _waits_for_single_ones(self) -> bool:
        """Messages that are alone in their requests take long: many of them would time out in the client's queue."""
        return bool(self._again) and self._again[0].alone and self._under_way > 0

    async def fill(self) -> None:
        """Take as many records of the batch as the next portion needs.

        Raises:
            CodecError: a record is malformed.
        """
        await self._feed.fill()

    def portion(self) -> tuple[Parcel, ...]:
        """The parcels to send now; empty while others have to end first."""
        if self._failed or self.refused or self._waits_for_single_ones:
            return ()
        portion = tuple(self._again[: PORTION.max_rows]) or self._grouping.take()
        del self._again[: PORTION.max_rows]
        self._under_way += len(portion)
        return portion

    def confirmed(self, parcels: Collection[Parcel]) -> None:
        """Take that parcels are stored."""
        self._under_way -= len(parcels)
        self._grouping.settle(parcels)

    def failed(self, parcel: Parcel, failure: Failure) -> None:
        """Take that a parcel is not stored, or not known to be."""
        self._under_way -= 1
        decision = verdict(failure, alone=parcel.alone)
        if decision is Verdict.REJECTED:
            self.refused.append((parcel, failure))
            return
        parcel.alone = parcel.alone or decision is Verdict.ALONE or failure is NO_PLACE
        self._failed.append(parcel)
        self.failures.append(failure)

    def dismiss(self) -> list[tuple[Parcel, Failure]]:
        """Take out and return the refused parcels whose failure is about one record; nothing may be under way."""
        assert self._under_way == 0, "a parcel may still be confirmed"
        dismissed = [each for each in self.refused if is_about_one_record(each[1])]
        self.refused = [each for each in self.refused if not is_about_one_record(each[1])]
        self._grouping.settle(parcel for parcel, _ in dismissed)
        return dismissed

    def resume(self) -> None:
        """Hand out again what failed; nothing may be under way."""
        assert self._under_way == 0, "a parcel may still be confirmed"
        self._again = self._failed + self._again
        self._failed = []
        self.failures = []
