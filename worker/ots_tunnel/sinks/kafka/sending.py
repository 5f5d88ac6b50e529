"""The messages of one write: handed to a producer, and their reports taken."""

from __future__ import annotations

from confluent_kafka import KafkaException

from ots_tunnel.fence import Guard
from ots_tunnel.sinks.kafka.connections import Connections
from ots_tunnel.sinks.kafka.failures import Failure
from ots_tunnel.sinks.kafka.message import Messages
from ots_tunnel.sinks.kafka.producer import ReportingProducer
from ots_tunnel.sinks.kafka.reports import Reports, failure_of
from ots_tunnel.sinks.kafka.shipment import Parcel

#: Reports that one round of the event loop takes, out of tens of thousands: less than a millisecond of work.
REPORTS_AT_ONCE = 500


class Sending:
    """Sends parcels.

    Args:
        guard: asked before each message.
    """

    def __init__(self, connections: Connections, messages: Messages, guard: Guard) -> None:
        self._connections = connections
        self._messages = messages
        self._guard = guard
        self._reports: Reports[Parcel] = Reports()
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
        producer, alone = None, False
        made = self._messages.of([parcel.record for parcel in portion])
        for parcel, message in zip(portion, made, strict=True):
            while True:
                if producer is None or producer.fatal is not None or parcel.alone is not alone:
                    alone = parcel.alone
                    producer = await self._connections.ready(alone=alone)
                    if goes_on:
                        self._attend(producer)
                    elif producer is not self._attended:
                        self.rest()  # the one before may be closed
                self._guard.check()
                try:
                    producer.produce(message, parcel, self._reports)
                except BufferError:
                    self.rest()
                    await producer.room()
                    producer = None  # another one may have taken its place meanwhile
                    continue
                except KafkaException as error:
                    self._reports.kept.append((parcel, failure_of(error.args[0], by_client=True)))
                break
        if self._attended is not None:
            self._attended.serve()

    async def reported(self, *, wait: bool) -> list[tuple[Parcel, Failure | None]]:
        """What became of parcels, as many as one round may take.

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

    def _attend(self, producer: ReportingProducer) -> None:
        if producer is not self._attended:
            self.rest()
            producer.attend(self._reports)
            self._attended = producer
