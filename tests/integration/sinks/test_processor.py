"""Users' processors: one per channel, never two calls at once, confirmed when they are done."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.model import TunnelType
from ots_tunnel.processor import ChannelContext, Confirm, SimpleProcessorFactory
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.python.sink import ManualProcessorSink, ProcessorSink
from tests.support.emulator.emulator_scene import EmulatorScene
from tests.support.sinks.sinks import check_order
from tests.support.waiting import until

KEYS = [f"k{number:03}" for number in range(200)]
#: Heartbeat timeout where each record is to come once: beside other tests a process may stand still for a second.
PATIENT = 10


@pytest.fixture
def scene() -> EmulatorScene:
    return EmulatorScene(Emulator(settings=Settings(page_rows=50, init_delay=0.01)))


class CallLog:
    """What processors were called with, in order."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int]] = []
        self.events: list[tuple[str, str]] = []
        self.inside = 0
        self.threads: set[str] = set()

    def opened(self, context: ChannelContext) -> None:
        self.events.append(("open", context.channel_id))

    def take(self, context: ChannelContext, records: Sequence[Record]) -> None:
        self.inside += 1
        self.threads.add(threading.current_thread().name)
        for record in records:
            self.rows.append((str(record.primary_key[0][1]), int(record.columns[0].value)))
        self.events.append(("process", context.channel_id))
        self.inside -= 1

    def closed(self, context: ChannelContext) -> None:
        assert self.inside == 0
        self.events.append(("close", context.channel_id))


async def test_functions_run_in_a_thread_of_their_channel(scene: EmulatorScene) -> None:
    await scene.create_table(partitions=2)
    await scene.put(KEYS)
    await scene.create_tunnel()
    log = CallLog()
    sink = ProcessorSink(SimpleProcessorFactory(log.take, initialize=log.opened, shutdown=log.closed))

    async with scene.running(scene.worker(sink, timeout=PATIENT)):
        await until(lambda: len(log.rows) >= 200, what="base")
        await scene.put(KEYS, [2, 3])
        await until(lambda: len(log.rows) >= 600, what="stream")

    assert sorted(log.rows) == sorted(scene.everything())
    check_order(log.rows)
    assert threading.current_thread().name not in log.threads
    for channel in {channel for _, channel in log.events}:
        calls = [event for event, name in log.events if name == channel]
        assert calls[0] == "open"
        assert calls[-1] == "close"
        assert calls.count("open") == calls.count("close") == 1


async def test_coroutines_run_in_the_loop(scene: EmulatorScene) -> None:
    await scene.create_table()
    await scene.put(KEYS)
    await scene.create_tunnel()
    log = CallLog()
    seen: list[object] = []

    async def process(context: ChannelContext, records: Sequence[Record]) -> None:
        await asyncio.sleep(0)
        seen.append(context.custom_value)
        log.take(context, records)

    async with scene.running(scene.worker(ProcessorSink(SimpleProcessorFactory(process, custom_value="anything")))):
        await until(lambda: len(log.rows) >= 200)

    assert set(seen) == {"anything"}
    assert log.threads == {threading.current_thread().name}


async def test_a_function_that_blocks_holds_up_neither_heartbeat_nor_other_channels(scene: EmulatorScene) -> None:
    await scene.create_table(partitions=2)
    await scene.put(KEYS)
    await scene.create_tunnel(TunnelType.BaseData)
    release, log = threading.Event(), CallLog()

    def process(context: ChannelContext, records: Sequence[Record]) -> None:
        if context.channel_id == "BaseData_0":
            assert release.wait(20)
        log.take(context, records)

    try:
        async with scene.running(
            worker := scene.worker(ProcessorSink(SimpleProcessorFactory(process)), timeout=PATIENT)
        ):
            await until(lambda: len(log.rows) >= 100, what="the other channel")
            beat = worker.status.last_heartbeat
            await until(lambda: worker.status.last_heartbeat != beat, what="a heartbeat")
            release.set()
            await until(lambda: len(log.rows) >= 200, what="the slow channel")
    finally:
        release.set()

    assert sorted(log.rows) == sorted(scene.everything())


async def test_records_of_a_failed_callback_come_again_from_the_checkpoint(scene: EmulatorScene) -> None:
    await scene.create_table()
    await scene.put(KEYS)
    await scene.create_tunnel(TunnelType.BaseData)
    log, errors = CallLog(), [ValueError("not today")]

    def process(context: ChannelContext, records: Sequence[Record]) -> None:
        if len(log.rows) >= 100 and errors:
            raise errors.pop()
        log.take(context, records)

    sink = ProcessorSink(SimpleProcessorFactory(process, initialize=log.opened, shutdown=log.closed))
    async with scene.running(worker := scene.worker(sink, timeout=PATIENT)):
        await until(lambda: len(set(log.rows)) >= 200, what="everything in spite of the error")

    assert sorted(set(log.rows)) == sorted(scene.everything())
    assert not errors
    assert [event for event, _ in log.events if event != "process"] == ["open", "close", "open", "close"]
    assert worker.status.error is None


async def test_a_processor_that_fails_is_named_in_the_channel_list(scene: EmulatorScene) -> None:
    await scene.create_table()
    await scene.put(KEYS)
    await scene.create_tunnel(TunnelType.BaseData)

    def process(context: ChannelContext, records: Sequence[Record]) -> None:
        raise KeyError("price")

    async with scene.running(worker := scene.worker(ProcessorSink(SimpleProcessorFactory(process)), timeout=PATIENT)):
        await until(lambda: any(view.progress.error for view in worker.status.channels.values()))
        error = next(view.progress.error for view in worker.status.channels.values())

    assert error == "ProcessorFailed: process raised KeyError: 'price'"


async def test_nothing_is_checkpointed_before_the_user_confirms(scene: EmulatorScene) -> None:
    await scene.create_table()
    await scene.put(KEYS)
    await scene.create_tunnel(TunnelType.BaseData)
    log = CallLog()
    confirms: list[Confirm] = []

    def process(context: ChannelContext, records: Sequence[Record], confirm: Confirm) -> None:
        log.take(context, records)
        confirms.append(confirm)

    sink = ManualProcessorSink(SimpleProcessorFactory(process, manual_checkpoints=True))
    async with scene.running(worker := scene.worker(sink, timeout=PATIENT)):
        await until(lambda: len(confirms) == 4, what="all pages handed over")
        confirms[1]()
        (view,) = worker.status.channels.values()
        await asyncio.sleep(0.3)  # several checkpoint intervals
        assert view.progress.rows == 0
        confirms[0]()
        await until(lambda: view.progress.rows == 100, what="the first two pages")
        for confirm in confirms:
            threading.Thread(target=confirm).start()  # from any thread, more than once
        await until(lambda: len(scene.owners()) == 0, what="the end of the channel")

    assert sorted(log.rows) == sorted(scene.everything())


async def test_a_callback_that_never_returns_ends_the_process(scene: EmulatorScene) -> None:
    await scene.create_table()
    await scene.put(KEYS)
    await scene.create_tunnel(TunnelType.BaseData)
    release, hung, began = threading.Event(), list[str](), threading.Event()

    def process(context: ChannelContext, records: Sequence[Record]) -> None:
        began.set()
        release.wait(20)

    sink = ProcessorSink(SimpleProcessorFactory(process), patience=0.1, on_hang=hung.append)
    try:
        # a client that is lost meanwhile would leave its channel, too, and the hang be noticed twice
        async with scene.running(worker := scene.worker(sink, drain=1, timeout=PATIENT)):
            await until(began.is_set)
            worker.drain()
            await until(lambda: bool(hung), what="the hang is noticed")
    finally:
        release.set()

    assert hung == ["BaseData_0"]
