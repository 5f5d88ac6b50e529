"""The sink of a Kafka topic: sends the records of a batch and waits until all of them are confirmed."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Self

from ots_tunnel.config import KafkaSinkConfig, RetryConfig, SinkDocument
from ots_tunnel.errors import MAX_REFUSED_KEYS, SinkError, SinkRejected
from ots_tunnel.fence import Guard, RequestFence
from ots_tunnel.sinks import Batch, Contact, Immediate, OnRefused, PageCost
from ots_tunnel.sinks.contact import Tries, Writes
from ots_tunnel.sinks.kafka.connections import Connections
from ots_tunnel.sinks.kafka.failures import Verdict, is_in_doubt, verdict
from ots_tunnel.sinks.kafka.message import Messages, Origin
from ots_tunnel.sinks.kafka.places import Places
from ots_tunnel.sinks.kafka.reports import Reports
from ots_tunnel.sinks.kafka.sending import Sending
from ots_tunnel.sinks.kafka.shipment import Parcel, Shipment
from ots_tunnel.sinks.key_text import key_text
from ots_tunnel.sinks.retries import write_backoff
from ots_tunnel.sinks.slices import Turns
from ots_tunnel.sinks.tally import Tally

#: Checks of the topic within the first pause between tries: the start of the sink waits for the answer.
CHECKS_PER_PAUSE = 10


class KafkaSink(Immediate):
    """Sends records to one topic.

    Args:
        origin: names table and tunnel in the messages' headers.
        retry: pauses after messages were not confirmed.
        deadline: D, seconds after which nothing of a write may be sent any more (docs/architecture.md rule 4).
        clock: monotonic seconds.

    Raises:
        ConfigError: the CA file or the login cannot be read.
    """

    cost = PageCost(5, 250)

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
        self._origin = origin
        self._backoff = write_backoff(retry)
        self._entropy = entropy
        self._connections = Connections(
            config,
            deadline=deadline,
            check_pause=lambda: self._backoff.delay(0, self._entropy()) / CHECKS_PER_PAUSE,
            clock=clock,
        )
        self._deadline = deadline
        self._turns = Turns()
        self._places = Places()
        self._writes = Writes()
        self.retries = 0

    @classmethod
    def from_config(cls, config: SinkDocument, section: KafkaSinkConfig) -> Self:
        """The sink of a worker's document."""
        source = config.source
        return cls(
            section,
            Origin(source.instance, source.table, source.tunnel_name),
            retry=config.delivery.retry,
            deadline=config.client.write_deadline,
        )

    def __repr__(self) -> str:
        return f"KafkaSink({self._topic})"

    async def open(self) -> None:
        """Connect, and check that the topic exists.

        Raises:
            SinkRejected: it does not, or its rights forbid to look.
            SinkError: no broker answers.
        """
        self._connections.login_refusals.forget()
        await self._connections.check_topic()
        self._writes.looked()

    async def write(self, batch: Batch, guard: Guard) -> None:
        """Send every record; return when all are confirmed. See `Immediate.write`.

        Raises:
            CodecError: a record is malformed.
        """
        self._connections.refresh_login()
        with self._writes.tries() as tries:
            await self._ship(batch, guard, tries)

    async def _ship(self, batch: Batch, guard: Guard, tries: Tries) -> None:
        fence = RequestFence(guard, self._deadline)
        messages = Messages(self._origin, batch.channel_id, batch.channel_type)
        reports: Reports[Parcel] = Reports()
        sending = Sending(self._connections, messages, fence, reports)
        shipment, attempt = Shipment(batch.records, self._turns, reports.kept, self._places), 0
        await shipment.fill()
        try:
            while not shipment.is_done:
                portion = shipment.portion()
                if portion:
                    await sending.send(portion, goes_on=shipment.goes_on)
                reported = await sending.reported(wait=not portion)
                if not portion and reported[0].failure is None:
                    attempt = 0
                if self._settle(shipment, reported):
                    self._writes.confirmed()
                    tries.advanced()
                await self._turns.next()
                if shipment.is_stuck:
                    sending.rest()
                    if batch.on_refused is not None:
                        self._tolerate(shipment, batch.on_refused)
                    self._raise_refusal(shipment)
                    if shipment.failures:
                        await self._recover(shipment, attempt, fence, tries)
                        attempt += 1
                await shipment.fill()
        finally:
            sending.rest()

    async def close(self) -> None:
        """Drop what was abandoned, and disconnect."""
        await self._connections.close()

    def tally(self) -> Tally:
        """See `Channels.tally`."""
        return Tally(write_retries=self.retries)

    def contact(self) -> Contact:
        """See `Channels.contact`."""
        return self._writes.contact

    def _settle(self, shipment: Shipment, reported: list[Parcel]) -> bool:
        """Take what became of parcels; whether any is stored."""
        stored: list[Parcel] = []
        for parcel in reported:
            if parcel.failure is None:
                stored.append(parcel)
                if len(stored) == 1:
                    self._connections.login_refusals.forget()
            else:
                shipment.failed(parcel, self._connections.login_refusals.last or parcel.failure)
        shipment.confirmed(stored)
        return bool(stored)

    def _tolerate(self, shipment: Shipment, on_refused: OnRefused) -> None:
        for parcel, failure in shipment.dismiss():
            on_refused(parcel.record, failure.name, f"{self._connections.where}: {failure.words}")

    def _raise_refusal(self, shipment: Shipment) -> None:
        if not shipment.refused:
            return
        failure = shipment.refused[0][1]
        keys = tuple(key_text(parcel.key) for parcel, _ in shipment.refused[:MAX_REFUSED_KEYS])
        raise SinkRejected(failure.name, f"{self._connections.where}: {failure.words}", keys)

    async def _recover(self, shipment: Shipment, attempt: int, fence: RequestFence, tries: Tries) -> None:
        """Pause and check the topic as far as the failures need it, then hand out again what failed.

        Raises:
            SinkRejected: the topic is gone, or the producer broke in a way that a new one would, too.
        """
        self.retries += 1
        tries.failed(
            "the broker does not accept messages, which are tried again", str(shipment.failures[0]), topic=self._topic
        )
        self._connections.check_usable()
        self._connections.follow_certificates()
        verdicts = set(map(verdict, shipment.failures))
        if verdicts != {Verdict.ALONE}:
            doubt = fence.in_doubt if any(map(is_in_doubt, shipment.failures)) else 0.0
            await asyncio.sleep(max(self._backoff.delay(attempt, self._entropy()), doubt))
        if Verdict.CHECK_TOPIC in verdicts:
            await self._check_topic()
        shipment.resume()

    async def _check_topic(self) -> None:
        try:
            await self._connections.check_topic()
        except SinkRejected:
            raise
        except SinkError:
            return  # no broker answers now: the next message will show
