"""Kafka brokers of one topic, one for each of its partitions, that answer as the test says.

They speak as much of the protocol as librdkafka's idempotent producer needs, and keep what a broker keeps of a
producer: its epoch and its last sequence in each partition. So a repeated batch is stored once, an older epoch is
refused, and another producer id is not known.
"""

from __future__ import annotations

import asyncio
import re
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

TOPIC = "t"
PRODUCE, METADATA, API_VERSIONS, INIT_PRODUCER_ID = 0, 3, 18, 22
UNKNOWN_TOPIC, NO_RIGHTS, OUT_OF_ORDER, DUPLICATE, FENCED, UNKNOWN_PRODUCER = 3, 31, 45, 46, 47, 59
#: Where a batch of records has its producer id, epoch, first sequence and number of records.
PRODUCER_AT = 43
_NUMBERS = re.compile(rb'"sequence":\[0,\d+,(\d+)\]')
_KEYS = re.compile(rb'"key":\{"id":"(\w+)"\}')


@dataclass(frozen=True)
class Request:
    """A batch of records that a producer sends to one partition."""

    partition: int
    producer: int
    epoch: int
    sequence: int
    keys: tuple[str, ...]
    numbers: tuple[int, ...]


@dataclass
class Brokers:
    """Addresses, what was stored, and how requests are answered; `running` starts them.

    Args:
        on_produce: answers a request by the number of an error, 0 for none; it may `store` it.
    """

    on_produce: Callable[[Brokers, Request], Awaitable[int]]
    #: Answers every request for a producer id with this error.
    init_error: int = 0
    #: Answers so many of the first questions for the topic that there is none.
    unknown_topic: int = 0
    stored: list[Request] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    _producers: int = 1000
    _known: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    @property
    def addresses(self) -> list[str]:
        """For `bootstrapServers`."""
        return [f"127.0.0.1:{port}" for port in self.ports]

    def store(self, request: Request) -> int:
        """Store a batch unless it is a repetition or fenced; the number of the error to answer with."""
        place = (request.partition, request.producer)
        epoch, sequence = self._known.get(place, (-1, -1))
        if request.epoch < epoch:
            return FENCED
        if request.epoch == epoch and request.sequence <= sequence:
            return DUPLICATE
        self._known[place] = (request.epoch, request.sequence)
        self.stored.append(request)
        return 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection until it ends."""
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                body = await reader.readexactly(size)
                kind, version, correlation, length = struct.unpack_from(">hhih", body)
                answer = await self._answer(kind, version, body, 10 + max(length, 0))
                writer.write(struct.pack(">ii", 4 + len(answer), correlation) + answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the producer has closed it
        finally:
            writer.close()

    async def _answer(self, kind: int, version: int, body: bytes, at: int) -> bytes:
        if kind == API_VERSIONS:
            return self._versions(version)
        if kind == METADATA:
            return self._metadata()
        if kind == INIT_PRODUCER_ID:
            return self._producer_id()
        assert kind == PRODUCE, kind
        return await self._produced(body, at)

    def _versions(self, version: int) -> bytes:
        known = ((PRODUCE, 3), (1, 4), (METADATA, 4), (API_VERSIONS, 0), (INIT_PRODUCER_ID, 1))
        listed = b"".join(struct.pack(">hhh", kind, 0, newest) for kind, newest in known)
        too_new = 35
        return struct.pack(">hi", too_new if version else 0, len(known)) + listed

    def _metadata(self) -> bytes:
        brokers = b"".join(
            struct.pack(">i", number) + _text("127.0.0.1") + struct.pack(">ih", port, -1)
            for number, port in enumerate(self.ports, 1)
        )
        partitions = b"".join(
            struct.pack(">hiiiiii", 0, number - 1, number, 1, number, 1, number)
            for number in range(1, len(self.ports) + 1)
        )
        is_unknown = self.unknown_topic > 0
        self.unknown_topic -= is_unknown
        error = struct.pack(">h", UNKNOWN_TOPIC if is_unknown else 0)
        topic = error + _text(TOPIC) + struct.pack(">?i", False, len(self.ports)) + partitions
        head = struct.pack(">ii", 0, len(self.ports)) + brokers + _text("cluster")
        return head + struct.pack(">ii", 1, 1) + topic

    def _producer_id(self) -> bytes:
        self._producers += 1
        return struct.pack(">ihqh", 0, self.init_error, self._producers, 0)

    async def _produced(self, body: bytes, at: int) -> bytes:
        (length,) = struct.unpack_from(">h", body, at)
        at += 2 + max(length, 0) + 10
        (length,) = struct.unpack_from(">h", body, at)
        at += 2 + length + 4
        partition, size = struct.unpack_from(">ii", body, at)
        batch = body[at + 8 : at + 8 + size]
        producer, epoch, sequence = struct.unpack_from(">qhi", batch, PRODUCER_AT)
        keys = tuple(each.decode() for each in _KEYS.findall(batch))
        numbers = tuple(int(each) for each in _NUMBERS.findall(batch))
        offset = sum(len(each.numbers) for each in self.stored if each.partition == partition)
        error = await self.on_produce(self, Request(partition, producer, epoch, sequence, keys, numbers))
        answer = struct.pack(">ihqq", partition, error, -1 if error else offset, -1)
        return struct.pack(">i", 1) + _text(TOPIC) + struct.pack(">i", 1) + answer + struct.pack(">i", 0)


@asynccontextmanager
async def running(brokers: Brokers, partitions: int = 1) -> AsyncIterator[Brokers]:
    """Inside the block the brokers answer."""
    connections: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(brokers.serve(reader, writer))
        connections.add(task)
        task.add_done_callback(connections.discard)

    servers = [await asyncio.start_server(connected, "127.0.0.1", 0) for _ in range(partitions)]
    brokers.ports = [server.sockets[0].getsockname()[1] for server in servers]
    try:
        yield brokers
    finally:
        for server in servers:
            server.close()
        for task in tuple(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()
