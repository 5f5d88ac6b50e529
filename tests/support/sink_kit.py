"""The sink conformance kit: the guarantees of a sink, tested for any sink by one class.

A sink's tests provide a `Destination` in a fixture of that name and inherit the classes that apply:

    class TestMySink(SinkConformance, RetryConformance):
        @pytest.fixture
        async def destination(self) -> AsyncIterator[MyDestination]: ...

| class                | what it tests                                                                              |
|----------------------|--------------------------------------------------------------------------------------------|
| `SinkConformance`    | order per key, confirmation, drain, abandon, fence, crash and replay, bounded memory        |
| `HangConformance`    | a destination that hangs confirms nothing, and a channel that is abandoned ends in time     |
| `RetryConformance`   | transient failures are retried in order, and counted                                       |
| `RefusalConformance` | a refused record fails the batch or reaches the handler, the others are stored              |

The sink is made from a worker's document (`sink: {...}`), so its section and its entry in the choice are tested, too;
the fixture `new_sink` may be replaced. `Delivery` plays the worker: it hands over pages of one channel, knows which of
them are confirmed without a gap, and begins again at the last confirmed page, as a restarted worker begins at its
checkpoint.
"""

from __future__ import annotations

import asyncio
import random
import tracemalloc
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import pytest

from ots_tunnel.config import WorkerConfig
from ots_tunnel.errors import OwnershipLost, SinkRejected
from ots_tunnel.fence import Guard
from ots_tunnel.model import Action, ChannelId, ChannelType, SequenceInfo, Token
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch, Confirmation, Sink
from ots_tunnel.sinks.choice import open_sink
from ots_tunnel.sinks.middleware.base import deferred
from tests.support.guards import ClosedGuard, OpenGuard

CHANNEL = ChannelId("c1")
#: Deadline of one step in seconds, generous enough for a busy machine.
DEADLINE = 100.0
#: Pages of a test, keys of a page, and how often a key changes in a page.
PAGES, KEYS, CHANGES = 6, 7, 3
#: Bytes of a record: pages are larger than the smallest file that a sink may publish.
PADDING = 4_000
#: Seeds of the crashes.
SEEDS = range(5)

#: A key and the number that a change gave it; numbers of a key grow in commit order.
Stored = tuple[int, int]

#: Makes the sink, not opened, as a restarted worker makes it.
NewSink = Callable[[], Sink]


class Destination(Protocol):
    """Where a sink stores records, as its test sees it."""

    #: The member of the document's `sink`, such as ``{"http": {"url": ...}}``.
    section: Mapping[str, Any]

    async def stored(self) -> list[Stored]:
        """The stored records in the order of their arrival, without writes that are still under way."""
        ...


class Hanging(Destination, Protocol):
    """A destination that can stop answering."""

    def hang(self) -> None:
        """Answer no request from now on."""
        ...

    def resume(self) -> None:
        """Answer the requests that wait, and all later ones."""
        ...


class Unreliable(Destination, Protocol):
    """A destination that can fail for a moment."""

    def fail(self, times: int) -> None:
        """Refuse the next requests with a transient error."""
        ...


class Choosy(Destination, Protocol):
    """A destination that refuses some records permanently."""

    def refused(self, key: int, number: int) -> Record:
        """A record that the destination refuses."""
        ...


def change(key: int, number: int, padding: int = PADDING) -> Record:
    """The change that gives `number` to `key`."""
    columns = (Column("n", number), Column("padding", "." * padding))
    row = encode_row((("id", key),), columns, sequence=SequenceInfo(0, 1_700_000_000_000_000 + number, key))
    return Record(Action.PUT, row)


def page(ordinal: int, records: Sequence[Record]) -> Batch:
    """The page of a channel with this ordinal."""
    start, following = Token(f"page {ordinal}"), Token(f"page {ordinal + 1}")
    return Batch(CHANNEL, ChannelType.STREAM, records, start=start, following=following, page=ordinal + 1)


def document_of(
    destination: Destination, folder: Path, delivery: Mapping[str, Any], settings: Mapping[str, Any] | None = None
) -> WorkerConfig:
    """The worker's document of a sink.

    Args:
        folder: for the secret of the source.
        delivery: members of its `delivery` beside short pauses between tries.
        settings: its other sections.
    """
    secret = folder / "credentials"
    secret.mkdir(exist_ok=True)
    for name in ("accessKeyId", "accessKeySecret"):
        (secret / name).write_text("key")
    place = {"endpoint": "http://127.0.0.1:1", "instance": "shop", "table": "orders"}
    source = {**place, "tunnelName": "kit", "tunnelId": "kit", "credentials": {"directory": str(secret)}}
    # a table is compared with the source, which is beside it
    source |= destination.section.get("tablestore", {}) | {"table": "orders"}
    delivery = {"retry": {"backoffSeconds": 0.01, "backoffMaxSeconds": 0.05}, **delivery}
    document = {**(settings or {}), "source": source, "sink": destination.section, "delivery": delivery}
    return WorkerConfig.model_validate(document)


def pages(count: int = PAGES) -> list[Batch]:
    """Pages in commit order; every page changes every key several times."""
    return [
        page(ordinal, [change(key, ordinal * CHANGES + step) for step in range(CHANGES) for key in range(KEYS)])
        for ordinal in range(count)
    ]


def contents(batches: Iterable[Batch]) -> list[Stored]:
    """Keys and numbers of the records."""
    return [(_integer(record.primary_key[0][1]), _number(record)) for each in batches for record in each.records]


def _number(record: Record) -> int:
    return next(_integer(column.value) for column in record.columns if column.name == "n")


def _integer(value: object) -> int:
    assert isinstance(value, int)
    return value


def by_key(stored: Iterable[Stored]) -> dict[int, list[int]]:
    """The numbers of every key in the order of their arrival."""
    found: dict[int, list[int]] = defaultdict(list)
    for key, number in stored:
        found[key].append(number)
    return dict(found)


def stored_in_json(record: Mapping[str, Any]) -> Stored:
    """Key and number of a change in its JSON form."""
    return record["key"]["id"], next(column["value"] for column in record["columns"] if column["name"] == "n")


def rewinds(numbers: Sequence[int]) -> int:
    """How often a key went back to an earlier number."""
    return sum(later < earlier for earlier, later in pairwise(numbers))


class Delivery:
    """One opening of the channel: hands over pages as a worker does, and counts the confirmed ones."""

    def __init__(self, sink: Sink, batches: Sequence[Batch], guard: Guard) -> None:
        self.sink = sink
        self._batches = batches
        self._guard = guard
        self._confirmations: list[Confirmation] = []
        self._numbers: list[int] = []

    async def write_all(self) -> None:
        """Hand over every page, drain, and assert that every confirmation has ended."""
        for batch in self._batches:
            await self.write(batch)
        await self.drain()

    async def write(self, batch: Batch) -> None:
        """Hand over one page; more may follow before it is confirmed."""
        confirmation = await deferred(self.sink).take(batch, self._guard)
        self._numbers.append(batch.page)
        self._confirmations.append(confirmation)
        confirmation.add_done_callback(self._ended)

    async def drain(self) -> None:
        """Close the channel after everything has been stored."""
        await self.sink.end(CHANNEL, abandoned=False)
        for confirmation in self._confirmations:
            await confirmation

    async def abandon(self) -> None:
        """Close the channel as a worker that lost it does."""
        await self.sink.end(CHANNEL, abandoned=True)

    @property
    def confirmed(self) -> int:
        """Number of pages confirmed without a gap, which is the latest allowed checkpoint."""
        for count, confirmation in enumerate(self._confirmations):
            if not _is_stored(confirmation):
                return count
        return len(self._confirmations)

    def _ended(self, confirmation: Confirmation) -> None:
        if not confirmation.cancelled():
            confirmation.exception()  # retrieve the error, otherwise asyncio logs it
        # A checkpoint is a call of the service: it ends after everything that waits for the confirmation has run.
        confirmation.get_loop().call_soon(self._checkpoint)

    def _checkpoint(self) -> None:
        """Notify the sink of a stored checkpoint, which it may wait for before it publishes more."""
        if self.confirmed:
            self.sink.checkpointed(CHANNEL, self._numbers[self.confirmed - 1])


def _is_stored(confirmation: Confirmation) -> bool:
    return confirmation.done() and not confirmation.cancelled() and confirmation.exception() is None


class _Kit:
    """The opening of the sink, shared by the classes of the kit."""

    #: Sections of the document beside source and sink, such as ``delivery``.
    settings: Mapping[str, Any] = {}

    @pytest.fixture
    def new_sink(self, destination: Destination, tmp_path: Path) -> NewSink:
        """Make the sink from a worker's document."""
        config = document_of(destination, tmp_path, self.settings.get("delivery", {}), self.settings)
        return lambda: open_sink(config)

    @asynccontextmanager
    async def opened(
        self, new_sink: NewSink, batches: Sequence[Batch], guard: Guard | None = None
    ) -> AsyncIterator[Delivery]:
        """Open the sink, and begin the channel at the first of `batches`."""
        sink = new_sink()
        async with asyncio.timeout(DEADLINE):
            await sink.open()
            try:
                await sink.begin(CHANNEL, ChannelType.STREAM, batches[0].start)
                yield Delivery(sink, batches, guard or OpenGuard())
            finally:
                await sink.close()


class SinkConformance(_Kit):
    """What every sink guarantees."""

    async def test_records_of_a_key_arrive_once_and_in_commit_order(
        self, new_sink: NewSink, destination: Destination
    ) -> None:
        sent = pages()
        async with self.opened(new_sink, sent) as delivery:
            await delivery.write_all()

        assert by_key(await destination.stored()) == by_key(contents(sent))

    async def test_what_is_confirmed_is_stored(self, new_sink: NewSink, destination: Destination) -> None:
        sent = pages()
        async with self.opened(new_sink, sent) as delivery:
            for batch in sent:
                await delivery.write(batch)
                confirmed = contents(sent[: delivery.confirmed])
                assert set(confirmed) <= set(await destination.stored())
            await delivery.drain()

        assert delivery.confirmed == len(sent)

    async def test_a_drain_stores_and_confirms_everything(self, new_sink: NewSink, destination: Destination) -> None:
        sent = [page(0, [change(1, 1, padding=0)])]
        async with self.opened(new_sink, sent) as delivery:
            await delivery.write_all()
            assert await destination.stored() == [(1, 1)]
            assert delivery.confirmed == 1

    async def test_an_abandoned_channel_confirms_nothing_that_is_not_stored(
        self, new_sink: NewSink, destination: Destination
    ) -> None:
        sent = pages()
        async with self.opened(new_sink, sent) as delivery:
            for batch in sent:
                await delivery.write(batch)
            await delivery.abandon()
            confirmed = delivery.confirmed

        assert set(contents(sent[:confirmed])) <= set(await destination.stored())

    async def test_nothing_is_stored_behind_a_closed_fence(self, new_sink: NewSink, destination: Destination) -> None:
        sent = pages()
        async with self.opened(new_sink, sent, ClosedGuard()) as delivery:
            with pytest.raises(OwnershipLost):
                await delivery.write_all()
            await delivery.abandon()

        assert delivery.confirmed == 0
        assert await destination.stored() == []

    @pytest.mark.parametrize("seed", SEEDS)
    async def test_a_crash_and_a_replay_from_the_checkpoint_lose_nothing(
        self, new_sink: NewSink, destination: Destination, seed: int
    ) -> None:
        chance, sent, at, crashes = random.Random(seed), pages(), 0, 0
        while at < len(sent):
            async with self.opened(new_sink, sent[at:]) as delivery:
                crashed = await _interrupted(delivery, chance if crashes < 4 else None)
            at += delivery.confirmed
            crashes += crashed
            await _settled(destination)

        found, expected = by_key(await destination.stored()), by_key(contents(sent))
        assert {key: sorted(set(numbers)) for key, numbers in found.items()} == expected
        for numbers in found.values():
            assert numbers[-1] == max(numbers)
            assert rewinds(numbers) <= crashes

    async def test_memory_does_not_grow_with_what_was_confirmed(
        self, new_sink: NewSink, destination: Destination
    ) -> None:
        size, count = 100, 20
        of_a_page = size * PADDING
        async with self.opened(new_sink, pages(1)) as delivery:
            # A library loads other modules at its first call (Arrow loads pandas), which no later page repeats.
            await delivery.write(page(0, [change(key, 0) for key in range(size)]))
            tracemalloc.start()
            try:
                for ordinal in range(1, count + 1):
                    await delivery.write(page(ordinal, [change(key, ordinal) for key in range(size)]))
                growth, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            await delivery.drain()

        assert growth < 6 * of_a_page, f"{growth} bytes are kept after {count} pages of {of_a_page}"


class HangConformance(_Kit):
    """What a sink guarantees when its destination hangs."""

    async def test_a_destination_that_hangs_confirms_nothing(self, new_sink: NewSink, destination: Hanging) -> None:
        sent = pages(1)
        destination.hang()
        async with self.opened(new_sink, sent) as delivery:
            writing = asyncio.create_task(delivery.write_all())
            await asyncio.wait([writing], timeout=0.3)
            assert not writing.done()
            assert delivery.confirmed == 0
            destination.resume()
            await writing

        assert by_key(await destination.stored()) == by_key(contents(sent))

    async def test_an_abandoned_channel_ends_while_the_destination_hangs(
        self, new_sink: NewSink, destination: Hanging
    ) -> None:
        sent = pages(2)
        destination.hang()
        try:
            async with self.opened(new_sink, sent) as delivery:
                writing = asyncio.create_task(delivery.write_all())
                await asyncio.wait([writing], timeout=0.3)
                writing.cancel()
                await asyncio.wait([writing])
                async with asyncio.timeout(DEADLINE):
                    await delivery.abandon()
                assert delivery.confirmed == 0
        finally:
            destination.resume()


class RetryConformance(_Kit):
    """What a sink guarantees when its destination fails for a moment."""

    async def test_transient_failures_are_retried_in_order(self, new_sink: NewSink, destination: Unreliable) -> None:
        sent = pages()
        destination.fail(3)
        async with self.opened(new_sink, sent) as delivery:
            await delivery.write_all()
            assert delivery.sink.tally().write_retries >= 1
            contact = delivery.sink.contact()
            assert contact is not None
            assert contact.failing is None
            assert contact.confirmed is not None

        found = by_key(await destination.stored())
        assert {key: sorted(set(numbers)) for key, numbers in found.items()} == by_key(contents(sent))
        assert all(numbers[-1] == max(numbers) for numbers in found.values())


class RefusalConformance(_Kit):
    """What a sink guarantees when its destination refuses a record permanently."""

    async def test_a_refused_record_fails_the_batch(self, new_sink: NewSink, destination: Choosy) -> None:
        sent = [page(0, [change(1, 1, padding=0), destination.refused(2, 1), change(3, 1, padding=0)])]
        async with self.opened(new_sink, sent) as delivery:
            with pytest.raises(SinkRejected):
                await delivery.write_all()
            await delivery.abandon()

        assert delivery.confirmed == 0
        assert 2 not in by_key(await destination.stored())

    async def test_a_handler_gets_the_refused_record_and_the_others_are_stored(
        self, new_sink: NewSink, destination: Choosy
    ) -> None:
        refused: list[Record] = []
        bad = destination.refused(2, 1)
        records = [change(1, 1, padding=0), bad, change(3, 1, padding=0), change(1, 2, padding=0)]
        batch = replace(page(0, records), on_refused=lambda record, code, text: refused.append(record))
        async with self.opened(new_sink, [batch]) as delivery:
            await delivery.write_all()

        assert set(map(id, refused)) == {id(bad)}
        assert by_key(await destination.stored()) == {1: [1, 2], 3: [1]}


async def _interrupted(delivery: Delivery, chance: random.Random | None) -> bool:
    """Write everything, or cancel at a random point and abandon the channel; return whether it was cancelled."""
    writing = asyncio.create_task(delivery.write_all())
    done, _ = await asyncio.wait([writing], timeout=None if chance is None else chance.uniform(0, 0.05))
    if done:
        writing.result()
        return False
    writing.cancel()
    await asyncio.wait([writing])
    await delivery.abandon()
    return True


async def _settled(destination: Destination) -> None:
    """Wait until no abandoned write is under way; a worker waits for its write deadline instead."""
    before = await destination.stored()
    while True:
        await asyncio.sleep(0.05)
        now = await destination.stored()
        if now == before:
            return
        before = now
