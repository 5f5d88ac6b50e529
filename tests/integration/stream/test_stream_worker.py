"""`StreamWorker`: processors of users, their checkpoints and marks, and what their errors do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.errors import ConfigError, InvalidTransition, OwnershipLost, ProcessorFailed, ReadTimeout
from ots_tunnel.model import Credentials
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.stream.decide.consumer import State
from ots_tunnel.stream.lease.lease import SHARD_END, TRIM_HORIZON
from ots_tunnel.stream.processing.processor import (
    InitializationInput,
    ProcessRecordsInput,
    ShutdownInput,
    ShutdownReason,
)
from ots_tunnel.stream.processing.settings import StreamWorkerConfig
from ots_tunnel.stream.processing.worker import StreamWorker, WorkerState
from ots_tunnel.stream.shards import ShardId
from tests.support.emulator.emulator_scene import TABLE
from tests.support.emulator.follow_scene import KEYS, FollowScene, following
from tests.support.emulator.stream_scene import StreamScene
from tests.support.sinks.sinks import check_order
from tests.support.waiting import until

Row = tuple[str, int]


def rows_of(records: Any) -> list[Row]:
    return [(record.primary_key[0][1], record.columns[0].value) for record in records]


@pytest.mark.parametrize(
    ("endpoint", "instance", "message"),
    [
        ("http://127.0.0.1:99999", "demo", "endpoint: found 'http://127"),
        ("http://127.0.0.1", "de mo", "instance: found"),
    ],
)
def test_a_place_that_cannot_be_is_refused_with_the_configuration(endpoint: str, instance: str, message: str) -> None:
    """A worker in a thread of its own would end unseen."""
    with pytest.raises(ConfigError, match=message):
        StreamWorkerConfig(endpoint, instance, Credentials("a", "b"), TABLE, "leases")


class Factory:
    """Makes processors that keep what they get; `each` is called with every page."""

    def __init__(self, each: Callable[[Processor, ProcessRecordsInput], Any] | None = None) -> None:
        self.each = each
        self.made: list[Processor] = []
        self.rows: list[Row] = []
        self.stores = True
        self.stores_at_the_end = True

    async def create_processor(self) -> Processor:
        self.made.append(Processor(self))
        return self.made[-1]

    @property
    def reasons(self) -> list[tuple[str, ShutdownReason]]:
        return [(made.shard, made.reason) for made in self.made if made.reason is not None]


class Processor:
    """A processor of coroutines."""

    def __init__(self, factory: Factory) -> None:
        self.factory = factory
        self.shard = ""
        self.start = ""
        self.reason: ShutdownReason | None = None
        self.errors: list[Exception] = []
        self.empty_pages = 0

    async def initialize(self, given: InitializationInput) -> None:
        self.shard, self.start = given.shard_info.shard_id, given.initial_checkpoint

    async def process_records(self, given: ProcessRecordsInput) -> None:
        self.empty_pages += not given.records
        if self.factory.each is not None:
            await self.factory.each(self, given)
        self.factory.rows += rows_of(given.records)
        if self.factory.stores:
            await given.checkpointer.checkpoint()

    async def shutdown(self, given: ShutdownInput) -> None:
        self.reason = given.shutdown_reason
        if self.factory.stores_at_the_end:
            try:
                await given.checkpointer.checkpoint()
            except OwnershipLost as error:
                self.errors.append(error)


@pytest.fixture
async def scene() -> AsyncIterator[FollowScene]:
    async with following() as made:
        yield made


async def everything(scene: FollowScene, *factories: Factory) -> None:
    await until(lambda: {row for each in factories for row in each.rows} >= set(scene.everything()), what="all rows")


@pytest.mark.looptime
async def test_processors_follow_a_table_through_splits(scene: FollowScene) -> None:
    await scene.begin()
    factory = Factory()
    await scene.put(KEYS, range(2))
    worker = scene.processors("w", factory)
    await everything(scene, factory)
    parent, *children = scene.split()
    await scene.put(KEYS, [2, 3])
    await everything(scene, factory)

    assert len(factory.rows) == len(scene.everything())
    check_order(factory.rows)
    assert factory.reasons == [(parent, ShutdownReason.TERMINATE)]
    assert factory.made[0].start == "TRIM_HORIZON"
    await until(lambda: worker.leases[ShardId(parent)].checkpoint == SHARD_END)
    assert worker.shards[ShardId(parent)] is State.FINISHED
    assert {worker.shards[ShardId(child)] for child in children} == {State.READING}
    assert worker.status is WorkerState.RUNNING

    worker.shutdown()
    await scene.tasks["w"]
    assert worker.status is WorkerState.SHUTDOWN
    assert [reason for shard, reason in factory.reasons if shard != parent] == [ShutdownReason.STOLEN] * 2
    with pytest.raises(InvalidTransition):
        await worker.run_async()


@pytest.mark.looptime
async def test_an_idle_shard_is_read_less_and_less_often(scene: FollowScene) -> None:
    await scene.begin()
    factory = Factory()
    scene.processors("w", factory)
    await asyncio.sleep(60)
    [processor] = factory.made

    assert 10 < processor.empty_pages < 60


@pytest.mark.looptime
async def test_empty_pages_are_not_given_where_the_settings_say_so(scene: FollowScene) -> None:
    await scene.begin()
    factory = Factory()
    await scene.put(KEYS)
    scene.processors("w", factory, gives_empty_pages=False)
    await everything(scene, factory)
    await asyncio.sleep(60)

    assert factory.made[0].empty_pages == 0


@pytest.mark.looptime
async def test_two_workers_share_and_hand_over_without_a_repetition(scene: FollowScene) -> None:
    await scene.begin()
    for number in range(3):
        await scene.put(KEYS, [number])
        scene.split()
    first, second = Factory(), Factory()
    one = scene.processors("one", first)
    await until(lambda: len(one.shards) == 7)
    other = scene.processors("other", second)
    await until(lambda: len(other.shards) >= 3)
    await scene.put(KEYS, range(3, 5))
    await everything(scene, first, second)

    other.shutdown()
    await scene.tasks["other"]
    await scene.put(KEYS, range(5, 7))
    await everything(scene, first, second)

    assert len(first.rows) + len(second.rows) == len(scene.everything())
    for key in KEYS:
        numbers = sorted(number for rows in (first.rows, second.rows) for name, number in rows if name == key)
        assert numbers == scene.written[key]


@pytest.mark.looptime
async def test_a_processor_that_raises_stops_its_shard_alone_and_another_one_follows(scene: FollowScene) -> None:
    await scene.begin()
    await scene.put(KEYS)
    _, bad, good = scene.split()
    broken = False

    async def each(processor: Processor, given: ProcessRecordsInput) -> None:
        if processor.shard == bad and broken and given.records:
            raise ValueError("cannot")

    factory = Factory(each)
    worker = scene.processors("w", factory)
    await until(lambda: len(worker.shards) == 3)
    await everything(scene, factory)
    broken = True
    await scene.put(KEYS, [2])
    await until(lambda: sum(made.shard == bad for made in factory.made) >= 4, what="it was tried again")

    assert "ValueError: cannot" in str(worker.shard_errors[ShardId(bad)])
    assert {shard for shard, reason in factory.reasons if reason is ShutdownReason.PROCESS_RESTART} == {bad}
    assert len(factory.rows) > len(KEYS)
    assert asyncio.get_running_loop().time() > 5, "the pauses grow"
    assert worker.shards[ShardId(good)] is State.READING

    broken = False
    await everything(scene, factory)
    assert len(factory.rows) == 2 * len(KEYS), "the page that had failed was not taken for processed"
    assert worker.shard_errors == {}


@pytest.mark.looptime
async def test_a_processor_that_raises_ends_the_worker_as_in_java_where_the_settings_say_so(scene: FollowScene) -> None:
    await scene.begin()

    async def each(processor: Processor, given: ProcessRecordsInput) -> None:
        raise ValueError("cannot")

    worker = scene.processors("w", Factory(each), on_processor_error="Stop")
    with pytest.raises(ProcessorFailed, match="process_records raised ValueError: cannot"):
        await scene.tasks["w"]

    assert worker.status is WorkerState.ERROR
    assert isinstance(worker.exception, ProcessorFailed)
    assert {lease.owner for lease in (await scene.leases()).values()} == {""}


@pytest.mark.looptime
async def test_a_processor_marks_itself_as_done(scene: FollowScene) -> None:
    await scene.begin()

    async def each(processor: Processor, given: ProcessRecordsInput) -> None:
        given.shutdown_marker.mark_for_process_done()

    factory = Factory(each)
    await scene.put(KEYS)
    worker = scene.processors("w", factory)
    await until(lambda: factory.reasons)
    await scene.put(KEYS, [2])
    await asyncio.sleep(60)

    assert [reason for _, reason in factory.reasons] == [ShutdownReason.PROCESS_DONE]
    assert set(worker.shards.values()) == {State.RESTING}
    assert {number for _, number in factory.rows} == {1}
    [lease] = (await scene.leases()).values()
    assert lease.owner == "w"


@pytest.mark.looptime
async def test_a_processor_marks_itself_for_a_restart(scene: FollowScene) -> None:
    await scene.begin()

    async def each(processor: Processor, given: ProcessRecordsInput) -> None:
        if len(factory.made) < 3:
            given.shutdown_marker.mark_for_process_restart()

    factory = Factory(each)
    await scene.put(KEYS)
    scene.processors("w", factory)
    await everything(scene, factory)

    assert [reason for _, reason in factory.reasons] == [ShutdownReason.PROCESS_RESTART] * 2
    assert len(factory.rows) == len(KEYS)


@pytest.mark.looptime
async def test_without_checkpoints_the_records_come_again(scene: FollowScene) -> None:
    await scene.begin()
    factory = Factory()
    factory.stores = factory.stores_at_the_end = False
    await scene.put(KEYS)
    worker = scene.processors("w", factory)
    await everything(scene, factory)
    worker.shutdown()
    await scene.tasks["w"]

    scene.processors("x", factory)
    await until(lambda: len(factory.rows) == 2 * len(KEYS))


@pytest.mark.looptime
async def test_an_older_checkpoint_rewinds(scene: FollowScene) -> None:
    await scene.begin()
    seen: list[str] = []

    async def each(processor: Processor, given: ProcessRecordsInput) -> None:
        factory.stores = bool(seen)
        seen.append(given.checkpointer.largest_permitted_checkpoint_value)
        if len(seen) == 2:
            await given.checkpointer.checkpoint(seen[0])
            factory.stores = False

    factory = Factory(each)
    await scene.put(KEYS[:12])
    scene.processors("w", factory)
    await until(lambda: len(factory.rows) >= 17)

    assert rows_in_pages(factory.rows, 5)[1] == rows_in_pages(factory.rows, 5)[2], "the second page came again"


@pytest.mark.looptime
async def test_a_checkpoint_that_is_no_text_is_refused(scene: FollowScene) -> None:
    """No worker could read the lease any more."""
    await scene.begin()
    refused: list[str] = []

    async def each(processor: Processor, given: ProcessRecordsInput) -> None:
        wrong: Any = 5
        try:
            given.checkpointer.checkpoint(wrong)
        except TypeError as error:
            refused.append(str(error))

    factory = Factory(each)
    await scene.put(KEYS)
    scene.processors("w", factory)
    await everything(scene, factory)

    [shard] = await scene.leases()
    assert set(refused) == {f"checkpoint of shard {shard}: found 5, allowed is a text"}


class RewindingProcessor(Processor):
    """It begins at the oldest record, wherever the one before has stopped, and does not wait until that is stored."""

    async def initialize(self, given: InitializationInput) -> None:
        await super().initialize(given)
        given.checkpointer.checkpoint(TRIM_HORIZON)


class Rewinding(Factory):
    """Makes processors that rewind."""

    async def create_processor(self) -> Processor:
        self.made.append(RewindingProcessor(self))
        return self.made[-1]


@pytest.mark.looptime
async def test_a_processor_rewinds_before_its_first_page_also_where_it_does_not_await_that(scene: FollowScene) -> None:
    await scene.begin()
    await scene.put(KEYS[:3])
    first = Factory()
    worker = scene.processors("w", first)
    await until(lambda: len(first.rows) == 3)
    worker.shutdown()
    await scene.tasks["w"]
    await scene.put(KEYS[:3], [2])

    async def after_a_while(request: HttpRequest) -> HttpResponse:
        await asyncio.sleep(0.1)
        return await scene.emulator.handle(request)

    scene.answers["x"] = after_a_while
    second = Rewinding()
    scene.processors("x", second)
    await until(lambda: (KEYS[2], 2) in second.rows)

    assert [number for _, number in second.rows] == [1, 1, 1, 2, 2, 2]


def rows_in_pages(rows: list[Row], size: int) -> list[list[Row]]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


@pytest.mark.looptime
async def test_a_shard_that_ends_without_a_checkpoint_says_so_and_its_children_wait(scene: FollowScene) -> None:
    await scene.begin()
    factory = Factory()
    factory.stores = factory.stores_at_the_end = False
    await scene.put(KEYS)
    parent, *children = scene.split()
    worker = scene.processors("w", factory)
    await until(lambda: worker.shard_errors)

    assert "its children never start" in str(worker.shard_errors[ShardId(parent)])
    await asyncio.sleep(30)
    assert {made.shard for made in factory.made} == {parent}
    factory.stores_at_the_end = True
    await until(lambda: {made.shard for made in factory.made} == {parent, *children})


@pytest.mark.looptime
async def test_a_checkpoint_that_is_not_awaited_is_stored_nevertheless(scene: FollowScene) -> None:
    await scene.begin()

    async def each(processor: Processor, given: ProcessRecordsInput) -> None:
        given.checkpointer.checkpoint()

    factory = Factory(each)
    factory.stores = factory.stores_at_the_end = False
    await scene.put(KEYS)
    worker = scene.processors("w", factory)
    await everything(scene, factory)
    worker.shutdown()
    await scene.tasks["w"]

    again = Factory()
    scene.processors("x", again)
    await scene.put(KEYS, [2])
    await until(lambda: (KEYS[0], 2) in again.rows)
    assert {number for _, number in again.rows} == {2}


@pytest.mark.looptime
async def test_a_lost_lease_cancels_a_coroutine_before_another_worker_begins(scene: FollowScene) -> None:
    await scene.begin()
    events: list[tuple[float, str]] = []

    async def each(processor: Processor, given: ProcessRecordsInput) -> None:
        try:
            await asyncio.sleep(1000 if given.records else 0)
        finally:
            events.append((asyncio.get_running_loop().time(), "old ended"))

    async def next_one(processor: Processor, given: ProcessRecordsInput) -> None:
        events.append((asyncio.get_running_loop().time(), "new"))

    await scene.put(KEYS)
    old, new = Factory(each), Factory(next_one)
    scene.processors("old", old)
    await until(lambda: old.made)

    async def silent(_: HttpRequest) -> HttpResponse:
        raise ReadTimeout("no complete answer in time")

    silenced = asyncio.get_running_loop().time()
    scene.answers["old"] = silent
    scene.processors("new", new)
    await everything(scene, new)

    ended = next(at for at, kind in events if kind == "old ended")
    began = next(at for at, kind in events if kind == "new")
    assert ended - silenced <= 20 - (20 - 6) / 3 + 0.1, "it ends with the fence, not with the lease"
    assert began - ended >= (20 - 6) / 3, "D lies between the two"
    assert old.rows == []
    assert old.reasons[0][1] is ShutdownReason.ZOMBIE
    assert len(old.made[0].errors) == 1


@pytest.mark.looptime
async def test_a_shutdown_before_the_start_ends_the_run(scene: FollowScene) -> None:
    await scene.begin()
    worker = scene.processors("w", Factory())
    worker.shutdown()

    async with asyncio.timeout(1):
        await scene.tasks["w"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data_table": ""}, "data_table: found an empty text"),
        ({"status_table": "orders"}, "status_table: found 'orders', which is data_table"),
        ({"max_records": 0}, "max_records: found 0, allowed is 1 or more"),
        ({"max_records": "3"}, "max_records: found '3', allowed is an integer"),
        ({"max_records": True}, "max_records: found True, allowed is an integer"),
        ({"lease_duration": "6"}, "lease_duration: found '6', allowed is a number of seconds"),
        ({"take_interval": None}, "take_interval: found None, allowed is a number of seconds"),
        ({"auto_steal_lease": "no"}, "auto_steal_lease: found 'no', allowed is True or False"),
        ({"status_table": 5}, "status_table: found 5, allowed is a text"),
        ({"start": "2020"}, "start: found '2020', allowed is a time with a time zone, or None"),
        ({"renew_interval": 7}, "renew_interval: found 7, allowed is at most a third of lease_duration"),
        ({"sync_shard_interval": 0}, "sync_shard_interval: found 0"),
        ({"on_possible_gap": "Ignore"}, "on_possible_gap: found 'Ignore'"),
        ({"on_processor_error": "Skip"}, "on_processor_error: found 'Skip'"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused(change: dict[str, Any], message: str) -> None:
    given = {"data_table": "orders", "status_table": "leases", **change}

    with pytest.raises(ConfigError, match=message):
        StreamWorkerConfig("http://h", "i", Credentials("a", "b"), **given)


def test_the_defaults_are_those_of_the_java_library() -> None:
    config = StreamWorkerConfig("http://h", "i", Credentials("a", "b"), "orders", "leases")

    assert (config.lease_duration, config.renew_interval, config.take_interval) == (20, 6, 6)
    assert (config.parent_poll_interval, config.sync_shard_interval, config.table_ready_timeout) == (5, 10, 120)
    assert (config.max_records, config.auto_steal_lease) == (1000, True)


@pytest.mark.parametrize("worker_id", ["", None, 5])
def test_a_worker_id_that_is_none_is_refused(worker_id: Any) -> None:
    config = StreamWorkerConfig("http://h", "i", Credentials("a", "b"), "orders", "leases")

    with pytest.raises(ConfigError, match=f"worker_id: found {worker_id!r}, allowed is a text that is not empty"):
        StreamWorker(worker_id, config, Factory())


class Threaded:
    """A processor of functions, as the vendor's are."""

    def __init__(self, rows: list[Row], threads: set[str], reasons: list[ShutdownReason]) -> None:
        self.rows = rows
        self.threads = threads
        self.reasons = reasons

    def initialize(self, given: InitializationInput) -> None:
        self.threads.add(threading.current_thread().name)

    def process_records(self, given: ProcessRecordsInput) -> None:
        self.rows += rows_of(given.records)
        given.checkpointer.checkpoint()

    def shutdown(self, given: ShutdownInput) -> None:
        self.reasons.append(given.shutdown_reason)
        given.checkpointer.checkpoint()


async def test_a_processor_is_made_in_the_thread_of_its_shard(scene: FollowScene) -> None:
    """What takes long in a constructor, such as a connection, must keep no lease from being renewed."""
    threads: list[int] = []

    class Connecting:
        def create_processor(self) -> Processor:
            threads.append(threading.get_ident())
            return Processor(Factory())

    await scene.begin()
    scene.processors("w", Connecting())
    await until(lambda: threads)

    assert threading.get_ident() not in threads


class ThreadedFactory:
    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.threads: set[str] = set()
        self.reasons: list[ShutdownReason] = []

    async def create_processor(self) -> Threaded:
        return Threaded(self.rows, self.threads, self.reasons)


async def test_functions_run_in_a_thread_of_their_shard_and_run_blocks_in_another() -> None:
    """In real time, with `run` in a thread as the vendor's sample has it."""
    async with Emulator(settings=Settings(init_delay=0.01)) as emulator:
        scene = StreamScene(emulator)
        await scene.create_stream()
        await scene.put(KEYS)
        scene.emulator.split("demo", TABLE)
        await scene.put(KEYS, [2])
        factory = ThreadedFactory()
        config = StreamWorkerConfig(
            emulator.endpoint,
            "demo",
            Credentials("test-id", "test-secret"),
            TABLE,
            "leases",
            renew_interval=0.3,
            take_interval=0.3,
        )
        worker = StreamWorker("w", config, factory)
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            await until(lambda: set(factory.rows) == set(scene.everything()))
        finally:
            worker.shutdown()
            await asyncio.to_thread(thread.join, 30)

        assert not thread.is_alive()
        assert worker.exception is None
        assert len(factory.rows) == len(scene.everything())
        check_order(factory.rows)
        assert factory.reasons.count(ShutdownReason.TERMINATE) == 1
        assert factory.reasons.count(ShutdownReason.STOLEN) == 2
        assert all(name.startswith("processor ") for name in factory.threads)
