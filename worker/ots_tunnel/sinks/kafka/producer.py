"""librdkafka's producer for coroutines.

A thread waits for delivery reports, which the parcels of the messages keep, and wakes the writers in bursts. It sleeps
in librdkafka while any message is in flight, and on an event while none is. Nothing but `close` ends it: whatever fails
in it breaks the producer, which then sends nothing more and reports every message as purged.

A writer that goes on sending takes the reports itself (`attend`, `serve`), and the thread rests meanwhile. Otherwise
both would take the interpreter's lock in turns, once for each report, which costs more than sending.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaException

from ots_tunnel.sinks.kafka.failures import Failure
from ots_tunnel.sinks.kafka.message import Message
from ots_tunnel.sinks.kafka.reports import Reports, failure_of
from ots_tunnel.threads import DaemonThreads
from ots_tunnel.transport.foreign_sockets import limit_sockets

logger = logging.getLogger(__name__)

#: librdkafka is called with a KafkaError or None, and with the message, on any thread.
Parcel = Callable[[Any, Any], None]
#: The key decides about the partition.
ANY_PARTITION = -1
#: A message gets the time at which it is produced.
NOW = 0
#: Seconds the thread waits for a report before it checks whether it has to end: `close` takes at most this long.
POLL = 0.5
#: Seconds between two looks for new connections while messages are in flight.
LOOK_EVERY = 0.25
#: Port of a broker that is named without one.
BROKER_PORT = 9092
#: Seconds between two polls for librdkafka's own events, such as a lost broker, while no message is in flight.
IDLE_POLL = 10.0


class ReportingProducer:
    """One producer, used on the event loop.

    Args:
        settings: librdkafka's.
        on_error: called on the event loop with errors of connections, such as a broker that does not answer.
    """

    def __init__(self, settings: Mapping[str, Any], topic: str, on_error: Callable[[Failure], None]) -> None:
        self._topic = topic
        self._loop = asyncio.get_running_loop()
        self._on_error = on_error
        #: Writers that go on sending.
        self._senders: set[Reports[Any]] = set()
        #: Those whose messages may be under way.
        self._writers: weakref.WeakSet[Reports[Any]] = weakref.WeakSet()
        #: Whether the event loop will wake those with reports in its next round.
        self._is_waking = False
        self._room: list[asyncio.Future[None]] = []
        self._work = threading.Event()
        self._calls = 0
        self._stopping = False
        servers = str(settings.get("bootstrap.servers", "")).split(",")
        #: Ports of the brokers, as far as they are known.
        self._ports = {
            int(port) if (port := server.rpartition(":")[2]).isdigit() else BROKER_PORT for server in servers
        }
        self._give_up = float(settings.get("message.timeout.ms", 300_000)) / 1000
        self._looked_at = 0.0
        #: Connections that the last look found.
        self.limited = 0
        #: What broke the producer: it has to be replaced.
        self.fatal: Failure | None = None
        self._producer: Any = confluent_kafka.Producer({**settings, "error_cb": self._report_error}, logger=logger)
        self._thread = threading.Thread(target=self._serve, name="kafka reports", daemon=True)
        self._thread.start()
        self._threads = DaemonThreads("kafka calls", 2)

    def __repr__(self) -> str:
        return f"ReportingProducer({self._topic})"

    def produce(
        self, messages: Sequence[Message], parcels: Sequence[Parcel], reports: Reports[Any]
    ) -> tuple[int, Failure | None]:
        """Queue messages; later, each one's parcel is called with its report, and those who wait for `reports` wake.

        Returns: how many are queued, and why the next one is refused. Fewer than there are without a refusal: the queue
            is full, `room` waits for room.
        """
        produce, topic, queued = self._producer.produce, self._topic, 0
        self._writers.add(reports)
        try:
            for parcel, (key, value, headers) in zip(parcels, messages, strict=True):
                # By position: a keyword costs confluent_kafka a string for each of the eight parameters.
                produce(topic, value, key, ANY_PARTITION, parcel, None, NOW, headers)
                queued += 1
        except BufferError:
            return queued, None
        except KafkaException as error:
            return queued, failure_of(error.args[0], by_client=True)
        finally:  # also where a broken producer refuses it: the thread learns the reason
            if not self._senders and not self._work.is_set():
                self._work.set()
        return queued, None

    def attend(self, writer: Reports[Any]) -> None:
        """A writer goes on sending, and calls `serve` after each portion until it calls `leave`."""
        if not self._senders:
            self._work.set()  # the thread looks after the connections meanwhile
        self._senders.add(writer)

    def serve(self) -> None:
        """Take the reports that have come."""
        self._guarded(partial(self._producer.poll, 0))
        self._wake_writers()

    def leave(self, writer: Reports[Any]) -> None:
        """A writer sends no more for now: the thread waits for the reports again."""
        self._senders.discard(writer)
        if not self._senders:
            self._work.set()

    async def room(self) -> None:
        """Wait until messages have left the queue."""
        waiting = self._loop.create_future()
        self._room.append(waiting)
        await waiting

    def log_in(self, username: str, password: str) -> None:
        """Use this login for new connections; open ones stay."""
        self._producer.set_sasl_credentials(username, password)

    async def topic_error(self, timeout: float) -> Failure | None:
        """Ask the brokers about the topic for up to `timeout` seconds; return why it cannot be used, None if it can.

        Raises:
            KafkaException: no broker answered.
        """
        # librdkafka reports errors to the polling thread, which sleeps while no message is in flight.
        self._calls += 1
        self._work.set()
        try:
            described = await self._threads.run(self._producer.list_topics, self._topic, timeout)
        finally:
            self._calls -= 1
        self._ports |= {broker.port for broker in described.brokers.values()}
        error = described.topics[self._topic].error
        return None if error is None else failure_of(error)

    def retire(self, reason: Failure) -> None:
        """Send nothing more, and report every message as purged: another producer takes its place."""
        self.fatal = self.fatal or reason
        self._producer.purge(in_queue=True, in_flight=True, blocking=False)
        self._work.set()

    async def close(self) -> None:
        """Drop every message that is not confirmed, report each of them, and end the thread."""
        self._producer.purge(in_queue=True, in_flight=True, blocking=False)
        self._stopping = True
        self._work.set()
        await self._threads.run(self._thread.join)
        self._wake_writers()

    def _serve(self) -> None:
        while not self._stopping:
            self._guarded(self._wait_and_poll)
        give_up_at = time.monotonic() + self._give_up
        while len(self._producer) and time.monotonic() < give_up_at:
            self._guarded(partial(self._producer.poll, POLL))
        self._call_loop(self._wake_writers)  # `close` may have been cancelled, but other channels wait for them
        self._producer = None  # takes its connections down, which takes time

    def _guarded(self, call: Callable[[], object]) -> None:
        try:
            call()
        except KafkaException as error:
            # confluent_kafka raises librdkafka's fatal errors here instead of passing them to `error_cb`
            self._break(failure_of(error.args[0]))
        except Exception as error:
            # without this thread no report would come any more, and every writer would wait without end
            self._break(Failure("_FAIL", f"{type(error).__name__}: {error}", fatal=True))

    def _break(self, failure: Failure) -> None:
        """Send nothing more; every message that is under way is reported as purged."""
        self.fatal = self.fatal or failure
        self._producer.purge(in_queue=True, in_flight=True, blocking=False)
        self._call_loop(partial(self._on_error, failure))

    def _wait_and_poll(self) -> None:
        if self._may_rest():
            self._work.clear()
            # What happened before that line is seen here; what happens after it sets the event.
            if self._may_rest():
                self._work.wait(LOOK_EVERY if self._senders else IDLE_POLL)
        self._limit_sockets()
        reported = 1  # also where it raises, after some reports
        try:
            reported = self._producer.poll(0 if self._may_rest() else POLL)
        finally:
            if reported and not self._is_waking:
                self._is_waking = True
                self._call_loop(self._wake_writers)

    def _limit_sockets(self) -> None:
        """Let no message leave after the client has given it up, which librdkafka has no setting for."""
        now = time.monotonic()
        if self.fatal is None and now - self._looked_at >= LOOK_EVERY:
            self._looked_at = now
            self.limited = limit_sockets(self._ports, self._give_up)

    def _may_rest(self) -> bool:
        if self._stopping or self._calls:
            return False
        return bool(self._senders) or not len(self._producer)

    def _report_error(self, error: Any) -> None:
        self._call_loop(partial(self._on_error, failure_of(error)))

    def _call_loop(self, function: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:  # the loop was closed first: no caller is left
            self._stopping = True

    def _wake_writers(self) -> None:
        self._is_waking = False  # first: for what is kept from now on, the thread calls again
        for writer in self._writers:
            if writer.kept:
                writer.wake()
        waiting, self._room = self._room, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
