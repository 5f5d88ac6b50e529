"""The messages of one write: handed to a producer, and their reports taken."""

from __future__ import annotations

from ots_tunnel.fence import Guard
from ots_tunnel.sinks.kafka.connections import Connections
from ots_tunnel.sinks.kafka.message import Messages
from ots_tunnel.sinks.kafka.producer import ReportingProducer
from ots_tunnel.sinks.kafka.reports import Reports
from ots_tunnel.sinks.kafka.shipment import Parcel

#: Reports that one round of the event loop takes, out of tens of thousands: less than a millisecond of work.
REPORTS_AT_ONCE = 500
#: Messages that leave after one question to the guard, which costs as much as a fifth of one: a tenth of a millisecond.
MESSAGES_AT_ONCE = 25


class Sending:
    """Sends parcels.

    Args:
        guard: asked before every `MESSAGES_AT_ONCE` messages, and after the last ones.
        reports: what the parcels are reported to.
    """

    def __init__(self, connections: Connections, messages: Messages, guard: Guard, reports: Reports[Parcel]) -> None:
        self._connections = connections
        self._messages = messages
        self._guard = guard
        self._reports = reports
        #: The producer whose reports are taken between two portions.
        self._attended: ReportingProducer | None = None

    def __repr__(self) -> str:
        return f"Sending({self._reports})"

    async def send(self, portion: tuple[Parcel, ...], *, goes_on: bool) -> None:
        """Hand parcels to a producer.

        Args:
            goes_on: another portion follows, before any wait for a report.

        Raises:
            CodecError: a record is malformed. OwnershipLost: the guard forbids to send. SinkRejected, SinkError: there
                is no producer, see `Connections.ready`.
        """
        producer: ReportingProducer | None = None
        alone, first = False, 0
        for messages in self._messages.of([parcel.record for parcel in portion]):
            parcels = portion[first : first + len(messages)]
            first += len(messages)
            at = 0
            while at < len(parcels):
                group = _group(parcels, at)
                if producer is None or producer.fatal is not None or group[0].alone is not alone:
                    alone = group[0].alone
                    producer = await self._producer(alone=alone, goes_on=goes_on)
                self._guard.check()
                queued, refusal = producer.produce(messages[at : at + len(group)], group, self._reports)
                at += queued
                if refusal is not None:
                    parcels[at].refused(refusal)
                    at += 1
                elif queued < len(group):
                    self.rest()
                    await producer.room()
                    producer = None  # another one may have taken its place meanwhile
        self._guard.check()  # again: the last group is in doubt from now on, however long this process stood still
        if self._attended is not None:
            self._attended.serve()

    async def reported(self, *, wait: bool) -> list[Parcel]:
        """Parcels that are reported, as many as one round may take.

        Args:
            wait: for the first one.
        """
        if wait:
            self.rest()
            await self._reports.any()
        return self._reports.take(REPORTS_AT_ONCE)

    def rest(self) -> None:
        """Send no more for now: reports are waited for, or not needed any more."""
        if self._attended is not None:
            self._attended.leave(self._reports)
            self._attended = None

    async def _producer(self, *, alone: bool, goes_on: bool) -> ReportingProducer:
        producer = await self._connections.ready(alone=alone)
        if goes_on:
            self._attend(producer)
        elif producer is not self._attended:
            self.rest()  # the one before may be closed
        return producer

    def _attend(self, producer: ReportingProducer) -> None:
        if producer is not self._attended:
            self.rest()
            producer.attend(self._reports)
            self._attended = producer


def _group(parcels: tuple[Parcel, ...], first: int) -> tuple[Parcel, ...]:
    """The parcels from a place on that one producer gets at once."""
    group = parcels[first : first + MESSAGES_AT_ONCE]
    alone = group[0].alone
    end = next((place for place, parcel in enumerate(group) if parcel.alone is not alone), len(group))
    return group[:end]
