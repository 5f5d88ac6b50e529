"""The sink conformance kit finds broken guarantees: each sabotaged sink fails the test of its guarantee."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest

from ots_tunnel.model import ChannelId
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch, Confirmation, Deferred, Guard, Immediate
from tests.support.sink_kit import SEEDS, SinkConformance, Stored, contents, page


class Memory:
    """A destination in this process."""

    section: ClassVar[Mapping[str, Any]] = {}

    def __init__(self) -> None:
        self.held: list[Stored] = []

    async def stored(self) -> list[Stored]:
        return list(self.held)

    def store(self, records: Sequence[Record]) -> None:
        self.held += contents([page(0, records)])


class HonestSink(Immediate):
    """Keeps every guarantee."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    async def open(self) -> None:
        return None

    async def write(self, batch: Batch, guard: Guard) -> None:
        await asyncio.sleep(0.001)
        guard.check()
        self.memory.store(batch.records)
        return None

    async def close(self) -> None:
        return None


class Shuffling(HonestSink):
    """Reverses the order of a page."""

    async def write(self, batch: Batch, guard: Guard) -> None:
        guard.check()
        self.memory.store(random.Random(1).sample(batch.records, len(batch.records)))
        return None


class Hasty(HonestSink):
    """Confirms a page before it stores it."""

    async def write(self, batch: Batch, guard: Guard) -> None:
        guard.check()
        asyncio.get_running_loop().call_later(0.05, self.memory.store, batch.records)
        return None


class Unfenced(HonestSink):
    """Does not check the guard."""

    async def write(self, batch: Batch, guard: Guard) -> None:
        self.memory.store(batch.records)
        return None


class Forgetful(Deferred):
    """Confirms later, and confirms what it drops when its channel is abandoned."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._waiting: list[tuple[Batch, Confirmation]] = []

    async def open(self) -> None:
        return None

    async def begin(self, *channel: object) -> None:
        return None

    async def take(self, batch: Batch, guard: Guard) -> Confirmation:
        await asyncio.sleep(0.005)
        guard.check()
        confirmation: Confirmation = asyncio.get_running_loop().create_future()
        self._waiting.append((batch, confirmation))
        return confirmation

    def checkpointed(self, *page: object) -> None:
        return None

    async def end(self, channel_id: ChannelId, *, abandoned: bool) -> None:
        for batch, confirmation in self._waiting:
            if not abandoned:
                self.memory.store(batch.records)
            confirmation.set_result(None)
        self._waiting.clear()

    async def close(self) -> None:
        return None


class Hoarding(HonestSink):
    """Keeps a reference to every stored page."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._pages: list[Batch] = []

    async def write(self, batch: Batch, guard: Guard) -> None:
        self._pages.append(batch)
        return await super().write(batch, guard)


KIT = SinkConformance()
CASES = [
    (Shuffling, KIT.test_records_of_a_key_arrive_once_and_in_commit_order),
    (Hasty, KIT.test_what_is_confirmed_is_stored),
    (Unfenced, KIT.test_nothing_is_stored_behind_a_closed_fence),
    (Forgetful, KIT.test_an_abandoned_channel_confirms_nothing_that_is_not_stored),
    (Hoarding, KIT.test_memory_does_not_grow_with_what_was_confirmed),
]


class TestHonestSink(SinkConformance):
    @pytest.fixture
    def destination(self) -> Memory:
        return Memory()

    @pytest.fixture
    def new_sink(self, destination: Memory) -> Any:
        return lambda: HonestSink(destination)


@pytest.mark.parametrize(("sabotaged", "test"), CASES, ids=lambda value: getattr(value, "__name__", None))
async def test_the_kit_finds_the_guarantee_that_a_sink_breaks(
    sabotaged: type[HonestSink | Forgetful], test: Any
) -> None:
    memory = Memory()

    with pytest.raises((AssertionError, pytest.fail.Exception)):
        await test(lambda: sabotaged(memory), memory)


async def test_the_kit_finds_records_that_a_crash_loses() -> None:
    broken = 0
    for seed in SEEDS:
        memory = Memory()
        try:
            await KIT.test_a_crash_and_a_replay_from_the_checkpoint_lose_nothing(
                lambda memory=memory: Forgetful(memory),
                memory,
                seed,
            )
        except AssertionError:
            broken += 1

    assert broken
