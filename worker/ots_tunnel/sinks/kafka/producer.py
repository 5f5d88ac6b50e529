"""librdkafka's producer for coroutines: a thread waits for its reports and hands them over in bursts.

The thread sleeps in librdkafka while anything is under way, and on an event while nothing is.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import confluent_kafka

from ots_tunnel.sinks.kafka.failures import Failure
from ots_tunnel.sinks.kafka.message import Message

logger = logging.getLogger(__name__)

#: Seconds the thread waits for a report before it looks whether it is to end.
POLL = 0.5
#: Seconds between two looks at librdkafka's own events while nothing is under way.
IDLE_POLL = 10.0

#: Told what became of a message: None when it is stored on all replicas that are in sync.
Told = Callable[[Failure | None], None]
Answer = tuple[Told, Failure | None]


def failure_of(error: Any, *, by_client: bool = False) -> Failure:
    """What a KafkaError says."""
    return Failure(error.name(), error.str(), error.fatal(), by_client)


class ReportingProducer:
    """One producer, used on the event loop.

    Args:
        settings: librdkafka's.
        on_trouble: told on the event loop of what concerns no single message, such as a broker that does not answer.
    """

    def __init__(self, settings: Mapping[str, Any], topic: str, on_trouble: Callable[[Failure], None]) -> None:
        self._topic = topic
        self._loop = asyncio.get_running_loop()
        self._on_trouble = on_trouble
        self._answers: deque[Answer] = deque()
        self._room: list[asyncio.Future[None]] = []
        self._work = threading.Event()
        self._attended = 0
        self._stopping = False
        self.fatal: Failure | None = None
        self._producer: Any = confluent_kafka.Producer({**settings, "error_cb": self._troubled}, logger=logger)
        self._thread = threading.Thread(target=self._serve, name="kafka reports", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"ReportingProducer({self._topic})"

    def produce(self, message: Message, told: Told) -> None:
        """Queue a message; `told` is called on the event loop, later.

        Raises:
            BufferError: the queue is full; `room` says when to try again.
            KafkaException: the message is refused before it is queued.
        """
        self._producer.produce(
            self._topic,
            message.value,
            message.key,
            headers=message.headers,
            on_delivery=partial(self._reported, told),
        )
        if not self._work.is_set():
            self._work.set()

    async def room(self) -> None:
        """Return when messages have left the queue."""
        waiting = self._loop.create_future()
        self._room.append(waiting)
        await waiting

    def log_in(self, username: str, password: str) -> None:
        """Use these from the next connection on; those that stand stay."""
        self._producer.set_sasl_credentials(username, password)

    async def topic_error(self, timeout: float) -> Failure | None:
        """Ask the brokers about the topic, for up to `timeout` seconds: why it cannot be used, None if it can.

        Raises:
            KafkaException: no broker answered.
        """
        # Errors are reported to whoever polls, and nobody does while nothing is under way.
        self._attended += 1
        self._work.set()
        try:
            described = await asyncio.to_thread(self._producer.list_topics, self._topic, timeout)
        finally:
            self._attended -= 1
        error = described.topics[self._topic].error
        return None if error is None else failure_of(error)

    async def close(self) -> None:
        """Drop every message that has not left, wait for none, and end the thread."""
        self._producer.purge(in_queue=True, in_flight=True, blocking=False)
        self._stopping = True
        self._work.set()
        await asyncio.to_thread(self._thread.join)
        self._hand_over()

    def _serve(self) -> None:
        while not self._stopping:
            if self._is_idle():
                self._work.clear()
                # Whoever gave us something before that line is seen here, whoever does after it sets the event.
                if self._is_idle():
                    self._work.wait(IDLE_POLL)
            self._producer.poll(0 if self._is_idle() else POLL)
            if self._answers:
                self._call_loop(self._hand_over)
        self._producer.poll(0)
        self._producer = None  # its connections are taken down here: that takes time

    def _is_idle(self) -> bool:
        return not (self._stopping or self._attended or len(self._producer))

    def _reported(self, told: Told, error: Any, _message: Any) -> None:
        self._answers.append((told, None if error is None else failure_of(error)))

    def _troubled(self, error: Any) -> None:
        failure = failure_of(error)
        if failure.fatal:
            self.fatal = failure
        self._call_loop(partial(self._on_trouble, failure))

    def _call_loop(self, function: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:  # the loop was closed before us: nobody is left to be told
            self._stopping = True

    def _hand_over(self) -> None:
        while self._answers:
            told, failure = self._answers.popleft()
            told(failure)
        waiting, self._room = self._room, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
