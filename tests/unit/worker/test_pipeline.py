from __future__ import annotations

import asyncio
import gc
import math
import time
import weakref
from collections.abc import Coroutine
from dataclasses import dataclass, field

import pytest

from ots_tunnel.client.page import Page
from ots_tunnel.errors import CodecError, ConnectionLost, SinkRejected
from ots_tunnel.model import FINISHED, Action, ChannelId, ChannelType, Token
from ots_tunnel.protocol.idle_read import TICK
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.record import Record
from ots_tunnel.rate import RateLimit
from ots_tunnel.sinks import Batch, Channels, Confirmation, Deferred, Guard, Immediate
from ots_tunnel.transport import BeforeAnswer
from ots_tunnel.worker.channel.pipeline import Pipeline, PipelineEnd
from ots_tunnel.worker.channel.read_ahead import ChannelStart, ReadAhead
from ots_tunnel.worker.context import WorkerContext
from ots_tunnel.worker.pages.budget import LEAST_SHARE_BYTES, PATIENCE, ByteBudget
from ots_tunnel.worker.pages.read_page import ReadPage
from ots_tunnel.worker.progress.channel_progress import ChannelProgress
from ots_tunnel.worker.status.metrics import WorkerMetrics
from tests.support.guards import open_fence
from tests.support.records import PAGE_SECONDS, page
from tests.support.waiting import until

pytestmark = pytest.mark.looptime


@dataclass
class Scripted(Channels):
    """A channel whose pages are given by their token, and the calls of a sink of either kind."""

    pages: dict[str, Page]
    write_time: float = 0
    error: Exception | None = None
    events: list[tuple[float, str]] = field(default_factory=list)

    def note(self, event: str) -> None:
        self.events.append((round(asyncio.get_running_loop().time() - self.began, 3), event))

    def __post_init__(self) -> None:
        self.began = asyncio.get_running_loop().time()

    async def read(self, token: Token, before_answer: BeforeAnswer) -> Page:
        self.note(f"read {token}")
        await asyncio.sleep(0.001)
        if token not in self.pages:
            raise ConnectionLost(f"no page at {token}")
        return self.pages[token]

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    def names(self) -> list[str]:
        return [name for _, name in self.events]


@dataclass
class Script(Scripted, Immediate):
    """A sink that takes `write_time` per batch."""

    async def begin(self, *channel: object) -> None: ...

    def checkpointed(self, *page: object) -> None: ...

    async def end(self, *channel: object, abandoned: bool) -> None: ...

    async def write(self, batch: Batch, guard: Guard) -> None:
        await asyncio.sleep(self.write_time)
        if self.error is not None:
            raise self.error
        self.note(f"wrote {len(batch.records)}")


@dataclass
class Stand:
    """A pipeline between a script and its sink, with the confirmed tokens."""

    script: Script | Keeper
    kind: ChannelType = ChannelType.STREAM
    slots: asyncio.Semaphore | None = None
    start: str = "t0"
    end_us: int | None = None
    budget: ByteBudget = field(default_factory=lambda: ByteBudget(1 << 28))
    confirmed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        channel_id = ChannelId("c")
        self.progress = ChannelProgress(channel_id, self.kind)
        self.fence = open_fence(channel_id)
        context = WorkerContext(self.script, WorkerMetrics("t"), self.budget, RateLimit(0), self.slots, self.end_us)
        self.clock = context.clock
        ahead = ReadAhead(
            ChannelStart(channel_id, self.kind, Token(self.start)),
            self.script,
            context,
            on_read=self.progress.page_read,
            entropy=lambda: 0.5,
        )
        self.pipeline = Pipeline(ahead, context, self.fence, self._confirm)

    def _confirm(self, page: ReadPage) -> None:
        self.progress.page_confirmed(page)
        self.confirmed.append(page.following)
        self.script.note(f"confirmed {page.following}")

    async def run(self) -> PipelineEnd:
        return await self.pipeline.run()

    def stop(self) -> None:
        self.pipeline.stop()


async def test_pages_are_confirmed_in_order_up_to_the_end() -> None:
    script = Script({"t0": page(3, "t1", True), "t1": page(0, "t2", True), "t2": page(2, FINISHED)})
    stand = Stand(script)

    assert await stand.run() is PipelineEnd.FINISHED

    assert stand.confirmed == ["t1", "t2", FINISHED]
    assert stand.progress.rows == 5
    assert stand.budget.used_bytes == 0


async def test_each_page_tells_the_service_s_clock() -> None:
    ahead = 100.0
    stand = Stand(Script({"t0": page(1, FINISHED, service_time=math.floor(time.time() + ahead))}))

    await stand.run()

    assert stand.clock() - time.time() == pytest.approx(ahead, abs=1.5)


async def test_a_channel_resumed_at_its_end_reads_nothing() -> None:
    script = Script({})
    stand = Stand(script, start=FINISHED)

    assert await stand.run() is PipelineEnd.FINISHED
    assert script.events == []
    assert stand.confirmed == []


async def test_pages_are_read_while_one_is_written() -> None:
    script = Script({f"t{n}": page(1, f"t{n + 1}", True) for n in range(5)} | {"t5": page(1, FINISHED)}, write_time=1)
    stand = Stand(script)

    await stand.run()

    reads_before_first_write = script.names()[: script.names().index("wrote 1")]
    assert reads_before_first_write == ["read t0", "read t1", "read t2"]


async def test_a_page_is_delivered_before_the_back_off() -> None:  # J2
    script = Script({"t0": page(1, "t1", False), "t1": page(1, FINISHED)})
    stand = Stand(script)

    await stand.run()

    when = {name: at for at, name in script.events}
    assert script.names()[:4] == ["read t0", "wrote 1", "confirmed t1", "read t1"]
    assert when["read t1"] == pytest.approx(0.021, abs=0.002)


async def test_idle_stream_reads_grow_apart_and_base_reads_do_not() -> None:  # J1
    pages = {f"t{n}": page(0, f"t{n + 1}", False) for n in range(6)} | {"t6": page(0, FINISHED)}
    stream, base = Script(dict(pages)), Script(dict(pages))

    await Stand(stream).run()
    last = stream.events[-1][0]
    base.began = asyncio.get_running_loop().time()
    await Stand(base, ChannelType.BASE).run()

    assert 13.12 <= last < 13.12 + 3 * TICK  # long pauses end at ticks
    assert base.events[-1][0] < 0.05


async def test_stopping_finishes_the_page_being_written_and_drops_the_rest() -> None:
    script = Script({f"t{n}": page(1, f"t{n + 1}", True) for n in range(9)}, write_time=1)
    stand = Stand(script)
    running = asyncio.create_task(stand.run())
    await until(lambda: "read t2" in script.names())

    stand.stop()

    assert await running is PipelineEnd.STOPPED
    assert stand.confirmed == ["t1"]
    assert stand.fence.in_doubt == 0
    assert stand.budget.used_bytes == 0


class Taking(Script):
    """A sink whose second page waits for its turn for an hour."""

    turns = 0

    def turn(self, channel_id: ChannelId) -> Coroutine[None, None, None] | None:
        self.turns += 1
        return None if self.turns == 1 else self._wait()

    async def _wait(self) -> None:
        self.note("waits")
        await asyncio.sleep(3600)


async def test_a_page_whose_turn_has_not_come_is_dropped_at_once() -> None:
    """Nothing of it has left: what the sink holds of earlier pages is stored, and nothing is in doubt."""
    script = Taking({"t0": page(1, "t1", True), "t1": page(0, "t2", True), "t2": page(1, "t3", True)})
    stand = Stand(script)
    running = asyncio.create_task(stand.run())
    await until(lambda: "waits" in script.names())
    before = asyncio.get_running_loop().time()

    stand.stop()

    assert await running is PipelineEnd.STOPPED
    assert asyncio.get_running_loop().time() == before
    assert stand.confirmed == ["t1", "t2"]
    assert stand.fence.in_doubt == 0
    assert stand.budget.used_bytes == 0


async def test_a_stopped_idle_channel_ends_at_once() -> None:  # G10
    script = Script({"t0": page(0, "t0", False)})
    stand = Stand(script)
    running = asyncio.create_task(stand.run())
    await asyncio.sleep(10)
    before = asyncio.get_running_loop().time()

    stand.stop()

    assert await running is PipelineEnd.STOPPED
    assert asyncio.get_running_loop().time() == before


async def test_a_refused_page_is_not_confirmed_and_its_write_is_in_doubt() -> None:
    script = Script({"t0": page(1, "t1", True), "t1": page(1, "t2", True)}, error=SinkRejected("c", "m"))
    stand = Stand(script)

    with pytest.raises(SinkRejected):
        await stand.run()

    assert stand.confirmed == []
    assert stand.fence.in_doubt > 0
    assert stand.budget.used_bytes == 0


async def test_pages_before_a_failed_read_are_written_and_confirmed() -> None:
    script = Script({"t0": page(1, "t1", True)}, write_time=1)
    stand = Stand(script)

    with pytest.raises(ConnectionLost):
        await stand.run()

    assert script.names() == ["read t0", "read t1", "wrote 1", "confirmed t1"]
    assert stand.budget.used_bytes == 0


async def test_pages_that_the_sink_holds_when_a_read_fails_are_dropped_unconfirmed() -> None:
    keeper = Keeper({"t0": page(1, "t1", True)})
    stand = Stand(keeper)

    with pytest.raises(ConnectionLost):
        await stand.run()

    assert stand.confirmed == []
    assert keeper.names()[-2:] == ["took t0..t1", "end abandoned=True"]


async def test_a_cancelled_write_is_in_doubt() -> None:
    script = Script({"t0": page(1, "t1", True), "t1": page(1, FINISHED)}, write_time=60)
    stand = Stand(script)
    running = asyncio.create_task(stand.run())
    await asyncio.sleep(1)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert stand.fence.in_doubt > 0
    assert stand.confirmed == []
    assert stand.budget.used_bytes == 0


async def test_a_slot_is_held_from_the_read_to_the_end_of_the_write() -> None:
    slots = asyncio.Semaphore(1)
    one = Script({"t0": page(1, "t1", True), "t1": page(1, FINISHED)}, write_time=1)
    two = Script({"t0": page(1, "t1", True), "t1": page(1, FINISHED)}, write_time=1)

    await asyncio.gather(Stand(one, slots=slots).run(), Stand(two, slots=slots).run())

    events = [(at, name) for script in (one, two) for at, name in script.events if name.startswith(("read", "wrote"))]
    # Sorted by time; at the same moment one channel's write ends before the other's read begins.
    order = [name.split()[0] for _, name in sorted(events, key=lambda event: (event[0], event[1].startswith("read")))]
    assert order == ["read", "wrote"] * 4


async def test_caught_up_is_the_time_of_the_last_read_that_reached_the_end() -> None:
    script = Script(
        {"t0": page(2, "t1", True), "t1": page(0, "t2", False, service_time=2000.0), "t2": page(1, FINISHED)}
    )
    stand = Stand(script)
    running = asyncio.create_task(stand.run())
    await until(lambda: "t2" in stand.confirmed, pause=0.001)

    progress = stand.progress
    assert (progress.caught_up, progress.caught_up_time, progress.consumed_up_to) == (True, 2000.0, 2000.0)
    assert progress.lag(2007.0) == 7.0
    await running


@dataclass
class Keeper(Scripted, Deferred):
    """Keeps pages back until `keep` of them are there, or the channel ends."""

    keep: int = 2
    refuse: Exception | None = None
    held: list[Confirmation] = field(default_factory=list)

    async def begin(self, channel_id: ChannelId, channel_type: ChannelType, start: Token) -> None:
        self.note(f"begin {start}")

    def checkpointed(self, *page: object) -> None: ...

    async def take(self, batch: Batch, guard: Guard) -> Confirmation:
        self.note(f"took {batch.start}..{batch.following}")
        self.held.append(asyncio.get_running_loop().create_future())
        confirmation = self.held[-1]
        if len(self.held) == self.keep:
            self._settle()
        return confirmation

    def _settle(self) -> None:
        held, self.held = self.held, []
        for confirmation in held:
            if self.refuse is None:
                confirmation.set_result(None)
            else:
                confirmation.set_exception(self.refuse)

    async def end(self, channel_id: ChannelId, *, abandoned: bool) -> None:
        self.note(f"end abandoned={abandoned}")
        if not abandoned:
            self._settle()


async def test_a_sink_that_keeps_pages_confirms_them_later_and_in_order() -> None:
    keeper = Keeper({"t0": page(3, "t1", True), "t1": page(1, "t2", True), "t2": page(2, FINISHED)})
    stand = Stand(keeper)

    assert await stand.run() is PipelineEnd.FINISHED

    assert stand.confirmed == ["t1", "t2", FINISHED]
    events = [name for name in keeper.names() if not name.startswith("read")]
    assert events == [
        "begin t0",
        "took t0..t1",
        "took t1..t2",
        "confirmed t1",
        "confirmed t2",
        "took t2..finished",
        "end abandoned=False",
        "confirmed finished",
    ]
    assert stand.progress.rows == 6
    assert stand.budget.used_bytes == 0


async def test_an_empty_page_is_not_confirmed_before_those_that_are_kept() -> None:
    keeper = Keeper({"t0": page(3, "t1", True), "t1": page(0, "t2", True), "t2": page(2, FINISHED)})
    stand = Stand(keeper)

    assert await stand.run() is PipelineEnd.FINISHED

    assert stand.confirmed == ["t1", "t2", FINISHED]


async def test_a_later_refusal_ends_the_channel_and_drops_what_is_kept() -> None:
    pages = {f"t{number}": page(1, f"t{number + 1}", True) for number in range(50)}
    keeper = Keeper(pages, refuse=SinkRejected("OTSInvalidPK", "no such key"))
    stand = Stand(keeper)

    with pytest.raises(SinkRejected):
        await stand.run()

    assert stand.confirmed == []
    assert keeper.names()[-1] == "end abandoned=True"


async def test_a_write_that_waits_for_more_is_in_doubt() -> None:
    keeper = Keeper({"t0": page(3, "t1", True), "t1": page(0, "t2", False), "t2": page(0, "t2", False)}, keep=9)
    stand = Stand(keeper)
    running = asyncio.create_task(stand.run())
    await until(lambda: "read t2" in keeper.names())

    assert stand.fence.in_doubt > 0
    stand.stop()
    assert await running is PipelineEnd.STOPPED

    assert stand.confirmed[:1] == ["t1"]
    assert stand.fence.in_doubt == 0


async def test_reads_that_hang_do_not_stop_other_channels() -> None:
    class Silent(Script):
        async def read(self, token: Token, before_answer: BeforeAnswer) -> Page:
            await asyncio.Event().wait()
            raise AssertionError

    budget = ByteBudget(LEAST_SHARE_BYTES)
    silent, going = Stand(Silent({}), budget=budget), Stand(Script({"t0": page(1, FINISHED)}), budget=budget)
    hanging = asyncio.create_task(silent.run())
    await until(lambda: budget.used_bytes == LEAST_SHARE_BYTES)

    assert await asyncio.wait_for(going.run(), 2 * PATIENCE) is PipelineEnd.FINISHED

    silent.stop()
    await hanging
    assert budget.used_bytes == 0


async def test_pages_of_reads_that_hung_together_come_one_after_the_other() -> None:
    class Late(Script):
        async def read(self, token: Token, before_answer: BeforeAnswer) -> Page:
            await asyncio.sleep(8 * PATIENCE - asyncio.get_running_loop().time())  # all at the same time
            await before_answer()
            coming.append(token)
            await asyncio.sleep(1)
            most.append(len(coming))
            coming.remove(token)
            return page(1, FINISHED)

    coming, most = list[Token](), list[int]()
    budget = ByteBudget(2 * LEAST_SHARE_BYTES)
    stands = [Stand(Late({}), budget=budget) for _ in range(6)]

    await asyncio.gather(*(stand.run() for stand in stands))

    assert max(most) == 2  # as many as fit
    assert budget.used_bytes == 0


async def test_a_read_whose_answer_comes_slowly_keeps_its_room() -> None:
    class Slow(Script):
        async def read(self, token: Token, before_answer: BeforeAnswer) -> Page:
            await before_answer()
            await asyncio.sleep(2 * PATIENCE)
            assert budget.used_bytes == LEAST_SHARE_BYTES
            return page(1, FINISHED)

    budget = ByteBudget(LEAST_SHARE_BYTES)
    await asyncio.gather(*(Stand(Slow({}), budget=budget).run() for _ in range(2)))

    assert asyncio.get_running_loop().time() >= 4 * PATIENCE  # one after the other


class _Records(list[Record]):
    """Records that a weak reference can watch."""


@pytest.mark.parametrize("slots", [None, 1])
async def test_a_page_that_is_written_is_not_held_while_the_next_one_is_awaited(slots: int | None) -> None:
    class Once(Script):
        async def read(self, token: Token, before_answer: BeforeAnswer) -> Page:
            nonlocal only
            if token == "t0":
                found, only = only, page(0, FINISHED)
                return found
            asked.set()
            await asyncio.Event().wait()
            return only

    records = _Records(page(3, "t1", True).records)
    held = weakref.ref(records)
    only = Page(records, Token("t1"), True, 3000, 1000.0)
    del records
    asked = asyncio.Event()

    stand = Stand(Once({}), slots=asyncio.Semaphore(slots) if slots else None)
    run = asyncio.create_task(stand.run())
    await asyncio.wait_for(asked.wait(), 10)
    await until(lambda: stand.confirmed == ["t1"])

    gc.collect()
    assert held() is None
    assert stand.budget.used_bytes <= LEAST_SHARE_BYTES  # the read under way

    stand.stop()
    await run


async def test_a_page_that_cannot_be_cut_at_the_end_time_gives_its_room_back() -> None:
    no_position = Record(Action.PUT, encode_row((("pk", "k"),), ()))
    damaged = Record(Action.PUT, b"")
    script = Script({"t0": Page([no_position, damaged], Token("t1"), True, 1000, 1000.0)})
    stand = Stand(script, end_us=1)

    with pytest.raises(CodecError):
        await stand.run()

    assert stand.budget.used_bytes == 0


@pytest.mark.parametrize("keep", [1, 9])
async def test_a_channel_that_reaches_the_end_time_is_confirmed_up_to_it_and_read_no_further(keep: int) -> None:
    keeper = Keeper({"t0": page(1, "t1", True), "t1": page(3, "t2", True), "t2": page(1, "t3", True)}, keep=keep)
    stand = Stand(keeper, end_us=(PAGE_SECONDS + 1) * 1_000_000)

    assert await stand.run() is PipelineEnd.END_TIME

    assert stand.confirmed == ["t1", "t1"]  # the second page was cut: a resume reads it again
    assert stand.progress.rows == 3
    assert stand.fence.in_doubt == 0
    assert "read t2" not in keeper.names()
    assert keeper.names()[-1] != "end abandoned=True"


class EveryPage(Keeper):
    """Takes pages without records as well, and sends nothing."""

    sends = False
    every_page = True


async def test_a_sink_that_wants_every_page_gets_those_without_records() -> None:
    keeper = EveryPage({"t0": page(0, "t1", True), "t1": page(1, "t2", True), "t2": page(0, FINISHED)})
    stand = Stand(keeper)

    assert await stand.run() is PipelineEnd.FINISHED

    assert [name for name in keeper.names() if name.startswith("took")] == [
        "took t0..t1",
        "took t1..t2",
        f"took t2..{FINISHED}",
    ]


async def test_the_page_of_a_sink_that_sends_nothing_is_never_in_doubt() -> None:
    doubts: list[bool] = []
    for kind in (Keeper, EveryPage):
        stand = Stand(kind({"t0": page(1, "t1", True), "t1": page(1, "t2", True)}, refuse=SinkRejected("c", "m")))
        with pytest.raises(SinkRejected):
            await stand.run()
        stand.fence.abandon_write()
        doubts.append(stand.fence.in_doubt > 0)

    assert doubts == [True, False]
