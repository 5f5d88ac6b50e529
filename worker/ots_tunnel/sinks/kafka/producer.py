"""librdkafka's producer for coroutines.

A thread waits for delivery reports, keeps them with the `Reports` of their writers, and wakes these in bursts. It
sleeps in librdkafka while any message is in flight, and on an event while none is. Nothing but `close` ends it:
whatever fails in it breaks the producer, which then sends nothing more and reports every message as purged.

A writer that goes on sending takes the reports itself (`attend`, `serve`), and the thread rests meanwhile. Otherwise
both would take the interpreter's lock in turns, once for each report, which costs more than sending.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaException

from ots_tunnel.sinks.kafka.failures import Failure
from ots_tunnel.sinks.kafka.message import Message
from ots_tunnel.sinks.kafka.reports import P, Reports, failure_of
from ots_tunnel.threads import DaemonThreads
from ots_tunnel.transport.foreign_sockets import limit_sockets

logger = logging.getLogger(__name__)

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
        #: Those who have new reports and are not woken yet.
        self._announced: deque[Reports[Any]] = deque()
        #: Whether the event loop will wake them in its next round.
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

    def produce(self, message: Message, parcel: P, reports: Reports[P]) -> None:
        """Queue a message; later, `reports` gets the failure of the parcel, None when all replicas in sync have it.

        Raises:
            BufferError: the queue is full; `room` waits for room.
            KafkaException: the message is refused before it is queued.
        """
        key, value, headers = message
        try:
            self._producer.produce(
                self._topic, value, key, headers=headers, on_delivery=partial(self._keep_report, reports, parcel)
            )
        finally:  # also where a broken producer refuses it: the thread learns the reason
            if not self._senders and not self._work.is_set():
                self._work.set()

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
        self._producer.poll(0 if self._may_rest() else POLL)
        if self._announced and not self._is_waking:
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

    def _keep_report(self, reports: Reports[P], parcel: P, error: Any, _message: Any) -> None:
        reports.kept.append((parcel, None if error is None else failure_of(error)))
        if not reports.is_announced:
            reports.is_announced = True
            self._announced.append(reports)

    def _report_error(self, error: Any) -> None:
        self._call_loop(partial(self._on_error, failure_of(error)))

    def _call_loop(self, function: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:  # the loop was closed first: no caller is left
            self._stopping = True

    def _wake_writers(self) -> None:
        self._is_waking = False  # first: the thread has those woken whom it announces from now on
        while self._announced:
            self._announced.popleft().wake()
        waiting, self._room = self._room, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
