"""The sink: sends the records of a batch and waits until all of them are confirmed."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from typing import Any, Self

from confluent_kafka import KafkaException

from ots_tunnel.config import KafkaSinkConfig, RetryConfig, WorkerConfig
from ots_tunnel.errors import ConfigError, SinkError, SinkRejected
from ots_tunnel.fence import Guard
from ots_tunnel.protocol.plainbuffer import decode_key_cells
from ots_tunnel.sinks import Batch, Immediate, Refused
from ots_tunnel.sinks.kafka.failures import Failure, Verdict, is_about_login, verdict
from ots_tunnel.sinks.kafka.login import FileLogin
from ots_tunnel.sinks.kafka.message import Messages, Origin
from ots_tunnel.sinks.kafka.producer import ReportingProducer, failure_of
from ots_tunnel.sinks.kafka.settings import producer_settings
from ots_tunnel.sinks.kafka.shipment import Parcel, Shipment
from ots_tunnel.sinks.retries import write_backoff
from ots_tunnel.sinks.tally import Tally

logger = logging.getLogger(__name__)

#: Seconds one question about the topic may take, and all of them together.
ASK_TIMEOUT = 1.0
ASK_DEADLINE = 10.0
#: Seconds between two warnings of the same kind.
WARNING_PAUSE = 60.0
#: Keys that a refusal names.
KEYS_NAMED = 10

Reports = asyncio.Queue[tuple[Parcel, Failure | None]]


class KafkaSink(Immediate):
    """Sends records to one topic.

    Args:
        origin: names table and tunnel in the messages' headers.
        retry: pauses after messages were not confirmed.
        deadline: D, seconds after which nothing of a write may be sent any more (design rule 4).
        clock: monotonic seconds.

    Raises:
        ConfigError: the CA file or the login cannot be read.
    """

    def __init__(
        self,
        config: KafkaSinkConfig,
        origin: Origin,
        *,
        retry: RetryConfig,
        deadline: float,
        clock: Callable[[], float] = time.monotonic,
        entropy: Callable[[], float] = random.random,
    ) -> None:
        self._topic = config.topic
        self._where = f"topic {config.topic!r} at {','.join(config.bootstrap_servers)}"
        self._origin = origin
        self._settings = producer_settings(config, deadline)
        self._login = FileLogin(config.sasl.directory) if config.sasl is not None else None
        if self._login is not None:
            self._login.read()
        self._backoff = write_backoff(retry)
        self._clock = clock
        self._entropy = entropy
        self._producer: ReportingProducer | None = None
        self._lonely: ReportingProducer | None = None
        #: What the client said last of its connections, which explains why nothing else is to be had.
        self._trouble: Failure | None = None
        #: What the brokers said of our login since a message was confirmed.
        self._turned_away: Failure | None = None
        self._warned: dict[str, float] = {}
        self.retries = 0

    @classmethod
    def from_config(cls, config: WorkerConfig, sink: KafkaSinkConfig) -> Self:
        """The sink of a worker's document."""
        source = config.source
        return cls(
            sink,
            Origin(source.instance, source.table, source.tunnel_name),
            retry=config.delivery.retry,
            deadline=config.client.write_deadline,
        )

    def __repr__(self) -> str:
        return f"KafkaSink({self._topic})"

    async def open(self) -> None:
        """Connect, and look whether the topic exists.

        Raises:
            SinkRejected: it does not, or we may not look.
            SinkError: no broker answers.
        """
        self._turned_away = None
        await self._ask()

    async def write(self, batch: Batch, guard: Guard) -> None:
        """Send every record, and return when all are confirmed; see `Sink.write`.

        Raises:
            CodecError: a record is malformed.
        """
        self._refresh_login()
        shipment, reports, attempt = Shipment(batch.records), Reports(), 0
        messages = Messages(self._origin, batch.channel_id, batch.channel_type)
        while not shipment.is_done:
            portion = shipment.portion()
            for parcel in portion:
                await self._send(parcel, messages, guard, reports)
            if portion:
                await asyncio.sleep(0)
            elif self._settle(shipment, *await reports.get()):
                attempt = 0
            while not reports.empty():
                self._settle(shipment, *reports.get_nowait())
            if shipment.is_stuck:
                if batch.refused is not None:
                    self._pass_on(shipment, batch.refused)
                self._raise_refusal(shipment)
                if shipment.failures:
                    await self._recover(shipment, attempt)
                    attempt += 1

    async def close(self) -> None:
        """Drop what was abandoned, and disconnect."""
        for producer in (self._producer, self._lonely):
            if producer is not None:
                await producer.close()
        self._producer = self._lonely = None

    def tally(self) -> Tally:
        """See `Sink.tally`."""
        return Tally(write_retries=self.retries)

    async def _send(self, parcel: Parcel, messages: Messages, guard: Guard, reports: Reports) -> None:
        message = messages.of(parcel.record)
        while True:
            producer = await self._ready(alone=parcel.alone)
            guard.check()
            try:
                return producer.produce(message, lambda failure: reports.put_nowait((parcel, failure)))
            except BufferError:
                await producer.room()
            except KafkaException as error:
                return reports.put_nowait((parcel, failure_of(error.args[0], by_client=True)))

    def _settle(self, shipment: Shipment, parcel: Parcel, failure: Failure | None) -> bool:
        if failure is None:
            self._turned_away = None
            shipment.confirmed(parcel)
        else:
            shipment.failed(parcel, self._turned_away or failure)
        return failure is None

    def _pass_on(self, shipment: Shipment, refused: Refused) -> None:
        for parcel, failure in shipment.dismiss():
            refused(parcel.record, failure.name, f"{self._where}: {failure.text}")

    def _raise_refusal(self, shipment: Shipment) -> None:
        if not shipment.refused:
            return
        failure = shipment.refused[0][1]
        keys = tuple(_key_text(parcel) for parcel, _ in shipment.refused[:KEYS_NAMED])
        raise SinkRejected(failure.name, f"{self._where}: {failure.text}", keys)

    async def _recover(self, shipment: Shipment, attempt: int) -> None:
        """Everything under way has ended, some of it unconfirmed: make sure that it pays to go on."""
        failure = shipment.failures[0]
        self.retries += 1
        pause = self._backoff.delay(attempt, self._entropy())
        self._warn("the broker does not take messages", failure, action="write_retried", pause=pause)
        if any(verdict(each) is not Verdict.ALONE for each in shipment.failures):
            await asyncio.sleep(pause)
        if any(verdict(each) is Verdict.ASK for each in shipment.failures):
            await self._ask_once_more()
        shipment.resume()

    async def _ask_once_more(self) -> None:
        try:
            await self._ask()
        except SinkRejected:
            raise
        except SinkError:
            return  # nobody knows for the moment: sending will show

    async def _ask(self) -> None:
        """Ask for the topic until a broker knows it.

        Raises:
            SinkRejected: it does not exist, or we may not look.
            SinkError: no broker answers, or the topic has no leader.
        """
        give_up_at = self._clock() + ASK_DEADLINE
        while True:
            producer = await self._ready()
            try:
                failure = await producer.topic_error(ASK_TIMEOUT)
            except KafkaException as error:
                failure = failure_of(error.args[0])
            failure = self._turned_away or producer.fatal or failure
            if failure is None:
                return
            if verdict(failure) in (Verdict.REJECTED, Verdict.ASK):
                raise SinkRejected(failure.name, f"{self._where}: {failure.text}")
            if self._clock() > give_up_at:
                reason = self._trouble or failure
                raise SinkError(f"{self._where}: {reason.name}: {reason.text}")
            await asyncio.sleep(self._backoff.delay(0, self._entropy()) / 10)

    async def _ready(self, *, alone: bool = False) -> ReportingProducer:
        """The producer of all messages, or the one whose requests hold one message; a new one after a fatal error.

        Raises:
            SinkRejected: no other producer could do better.
        """
        former = self._lonely if alone else self._producer
        if former is not None and former.fatal is None:
            return former
        if former is not None and former.fatal is not None and verdict(former.fatal) is Verdict.REJECTED:
            raise SinkRejected(former.fatal.name, f"{self._where}: {former.fatal.text}")
        producer = ReportingProducer(self._current_settings(alone=alone), self._topic, self._troubled)
        if alone:
            self._lonely = producer
        else:
            self._producer = producer
        if former is not None:
            await former.close()
        return producer

    def _current_settings(self, *, alone: bool) -> dict[str, Any]:
        settings = {**self._settings, "batch.num.messages": 1} if alone else dict(self._settings)
        if self._login is not None:
            login = self._login.read()
            settings |= {"sasl.username": login.username, "sasl.password": login.password}
        return settings

    def _refresh_login(self) -> bool:
        """Use the login that the files hold now; whether it is a new one."""
        try:
            login = self._login.changed() if self._login is not None else None
        except ConfigError as error:  # a Secret that is being replaced; the former login may serve still
            self._warn("the login cannot be read", Failure("ConfigError", str(error)), action="login_unreadable")
            return False
        if login is None:
            return False
        for producer in (self._producer, self._lonely):
            if producer is not None:
                producer.log_in(login.username, login.password)
        self._turned_away = None
        return True

    def _troubled(self, failure: Failure) -> None:
        if failure.name != "_ALL_BROKERS_DOWN":  # as the others have said, and why
            self._trouble = failure
        if is_about_login(failure) and not self._refresh_login():
            self._turned_away = failure
        self._warn("the broker cannot be used", failure, action="broker_trouble")

    def _warn(self, text: str, failure: Failure, *, action: str, **more: object) -> None:
        now = self._clock()
        if now - self._warned.get(failure.name, float("-inf")) < WARNING_PAUSE:
            return
        self._warned[failure.name] = now
        extra = {"action": action, "error": f"{failure.name}: {failure.text}", "topic": self._topic, **more}
        logger.warning(text, extra=extra)


def _key_text(parcel: Parcel) -> str:
    return ", ".join(f"{name}={str(value)[:32]!r}" for name, value in decode_key_cells(parcel.key))
