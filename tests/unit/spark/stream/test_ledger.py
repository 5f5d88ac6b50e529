"""The ledger between the tunnel and Spark: every record in exactly one batch, whatever is interrupted."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.errors import InvalidTransition, SinkRejected
from ots_tunnel.model import FINISHED, ChannelId, SequenceInfo, Token, TunnelId
from ots_tunnel.protocol.possible_gap import Gap
from ots_tunnel.protocol.record import Record
from ots_tunnel.spark.stream.channel_pages import REFRESH_SECONDS, GivenPage
from ots_tunnel.spark.stream.cut import Cut
from ots_tunnel.spark.stream.ledger import Ledger
from ots_tunnel.spark.stream.offset_json import offset_from_json, offset_to_json
from ots_tunnel.spark.stream.offsets import ChannelOffset, Offset
from tests.support.records import COMMITTED_US, numbered_record, record

C = ChannelId("c")
EMPTY = Offset(TunnelId("tunnel"), "query")
LARGE = 10**9
BEGIN = Token("0")
STEPS = ("read", "read", "read", "batch", "batch", "checkpoint", "reopen", "restart")


@dataclass
class World:
    """A channel with a log, the service's checkpoint, a ledger, and Spark's two logs.

    The service answers every read with a new token and another page.
    """

    log: list[Record]
    ends: bool = True
    now: float = 0.0
    checkpoint: Token = BEGIN
    logged: list[Offset] = field(default_factory=lambda: [EMPTY])
    committed: int = 0
    batches: dict[int, list[Record]] = field(default_factory=dict)
    confirmed: list[tuple[int, Token]] = field(default_factory=list)
    tokens: int = 0
    gap: Gap | None = None

    def __post_init__(self) -> None:
        self.ledger = Ledger(EMPTY, lambda: self.now, gap_of=lambda _: self.gap)
        self.open()

    def open(self) -> None:
        self.page, self.confirmed, self.token = 0, [], self.checkpoint
        if self.token != FINISHED:
            self.ledger.begin(C, self.token)

    def place(self, token: Token) -> int:
        return len(self.log) if token == FINISHED else int(token.split("#")[0])

    def read(self, size: int) -> None:
        """The next page of the worker."""
        if self.token == FINISHED:
            return
        at = self.place(self.token)
        records = self.log[at : at + size]
        self.tokens += 1
        end = at + len(records)
        following = Token(f"{end}#{self.tokens}")
        if self.ends and end == len(self.log):
            following = FINISHED
        self.page += 1
        number = self.page
        self.ledger.take(C, GivenPage(number, self.token, following, records, self.confirming(number, following)))
        self.token = following

    def confirming(self, number: int, following: Token) -> Callable[[], None]:
        pages = self.confirmed

        def confirm() -> None:
            pages.append((number, following))

        return confirm

    def batch(self, limit: int) -> None:
        """Spark commits the batch under way and plans the next one."""
        self.committed = len(self.logged) - 1
        start = self.logged[-1]
        again = self.ledger.records_of(start)  # Spark may plan a batch more than once
        if again is not None:
            self.keep(again)
        end = self.ledger.next_batch(start, limit)
        if end == start:
            return
        assert json.dumps(offset_to_json(end)) != json.dumps(offset_to_json(start)), "Spark would see no batch"
        self.logged.append(offset_from_json(json.loads(json.dumps(offset_to_json(end)))))
        self.keep(self.ledger.records_of(end) or {})

    def keep(self, found: dict[ChannelId, list[Record]]) -> None:
        number, records = len(self.logged) - 1, found.get(C, [])
        assert self.batches.setdefault(number, records) == records, "a batch that came again differs"

    def store(self) -> None:
        """The worker stores a checkpoint: behind the last page before which all are confirmed."""
        done = dict(self.confirmed)
        number = 0
        while number + 1 in done:
            number += 1
        if number:
            self.checkpoint = done[number]
            self.ledger.stored(C, number)
            committed = self.logged[self.committed].channels.get(C)
            last = 0 if committed is None else self.rows_until(committed)
            assert self.place(self.checkpoint) <= last, "a checkpoint passed what Spark has committed"

    def rows_until(self, channel: ChannelOffset) -> int:
        last = channel.position.last
        return 0 if last is None else 1 + [found.sequence or found.key for found in self.log].index(last)

    def reopen(self) -> None:
        """The channel is taken away and comes back at its checkpoint."""
        self.ledger.abandon(C)
        self.open()

    def restart(self, size: int) -> None:
        """The process is killed. Spark replays the batch that is logged and not committed, then goes on."""
        if self.committed < len(self.logged) - 1:
            self.keep({name: self.again(name, found, size) for name, found in self.logged[-1].spans.items()})
        self.committed = len(self.logged) - 1
        start = self.logged[-1]
        ended = frozenset(name for name, found in start.channels.items() if found.is_finished)
        self.ledger = Ledger(start, lambda: self.now, ended)
        if C in start.channels:
            self.checkpoint = start.channels[C].position.token
        self.open()

    def again(self, name: ChannelId, channel: ChannelOffset, size: int) -> list[Record]:
        assert channel.span is not None
        cut, at = Cut(name, channel), self.place(channel.span.token)
        found: list[Record] = []
        while not cut.is_done:
            if at >= len(self.log):
                cut.ended()
                break
            found += cut.take(self.log[at : at + size])
            at += size
        return found

    def delivered(self) -> list[Record]:
        return [each for number in sorted(self.batches) for each in self.batches[number]]


def stream(count: int) -> list[Record]:
    return [numbered_record(number % 3, number) for number in range(count)]


steps = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 5)), max_size=60)


@given(steps, st.integers(0, 25), st.booleans(), st.booleans())
def test_every_record_is_in_one_batch(story: list[tuple[str, int]], count: int, is_base: bool, ends: bool) -> None:
    log = [record((("id", number),)) for number in range(count)] if is_base else stream(count)
    world = World(log, ends)
    for name, size in story:
        match name:
            case "read":
                world.read(size)
            case "batch":
                world.batch(1 + size * 60)
            case "checkpoint":
                world.store()
            case "reopen":
                world.reopen()
            case "restart":
                world.restart(1 + size)

    for _ in range(count + 2):
        world.read(3)
        world.batch(LARGE)
    world.store()

    assert world.delivered() == log
    assert world.place(world.checkpoint) == count
    assert not ends or not count or world.checkpoint == FINISHED


def test_a_batch_that_spark_did_not_log_is_planned_again() -> None:
    world = World(stream(3))
    world.read(3)

    end = world.ledger.next_batch(EMPTY, LARGE)

    assert world.ledger.next_batch(EMPTY, 1) == end
    assert world.confirmed == []


def test_an_offset_of_another_query_is_refused() -> None:
    world = World(stream(3))
    world.read(3)
    world.batch(LARGE)

    with pytest.raises(InvalidTransition):
        world.ledger.next_batch(Offset(EMPTY.tunnel_id, "other"), LARGE)


def test_the_end_of_a_channel_is_confirmed_without_records_behind_it() -> None:
    """Otherwise the children of a split would wait for another channel's records."""
    world = World(stream(2))
    world.read(2)
    world.batch(LARGE)
    world.batch(LARGE)

    assert world.confirmed == [(1, FINISHED)]


def test_a_finished_channel_is_forgotten_once_the_service_has_stored_it() -> None:
    world = World(stream(2))
    world.read(2)
    world.batch(LARGE)
    world.batch(LARGE)
    world.store()
    other = ChannelId("child")
    world.ledger.begin(other, Token("0"))
    world.ledger.take(other, GivenPage(1, Token("0"), Token("9"), stream(1), lambda: None))

    world.batch(LARGE)

    assert set(world.logged[-1].channels) == {other}


def test_an_idle_channel_makes_a_batch_only_when_its_token_is_old() -> None:
    world = World(stream(1), ends=False)
    world.read(1)
    world.batch(LARGE)
    world.batch(LARGE)
    batches = len(world.logged)
    for _ in range(5):
        world.now += REFRESH_SECONDS / 10
        world.read(1)
        world.batch(LARGE)
    assert len(world.logged) == batches
    assert len(world.confirmed) == 6  # the tunnel's checkpoint moves all the same

    world.now += REFRESH_SECONDS
    world.batch(LARGE)

    assert len(world.logged) == batches + 1
    assert world.logged[-1].channels[C].position.token == world.token
    assert not world.logged[-1].spans


class Idle:
    """A ledger of channels whose tokens stand still, and until when they were read."""

    def __init__(self, *names: str, start: Offset = EMPTY) -> None:
        self.now, self.read = 0.0, dict[ChannelId, float | None]()
        self.ledger = Ledger(start, lambda: self.now, read_until=lambda name: self.read.get(name))
        self.offsets = [start]
        self.pages = 0
        for name in names:
            self.ledger.begin(ChannelId(name), BEGIN)

    def look(self, name: ChannelId, until: float | None, records: Sequence[Record] = ()) -> None:
        """A page, at whose end the channel was read until then."""
        self.read[name] = until
        self.pages += 1
        self.ledger.take(name, GivenPage(self.pages, BEGIN, BEGIN, records, lambda: None))

    def plan(self) -> Offset:
        self.offsets.append(self.ledger.next_batch(self.offsets[-1], LARGE))
        return self.offsets[-1]

    def until(self, name: ChannelId = C) -> int | None:
        """The time in the next offset."""
        found = self.plan().channels.get(name)
        return None if found is None else found.position.until

    @property
    def batches(self) -> int:
        """How many batches Spark has seen."""
        texts = [json.dumps(offset_to_json(offset)) for offset in self.offsets]
        return sum(text != before for before, text in pairwise(texts))


def test_an_idle_channel_whose_token_stands_still_tells_until_when_it_was_read() -> None:
    idle = Idle(C)

    def until(seconds: float, read: float | None) -> int | None:
        idle.now += seconds
        idle.look(C, read)
        return idle.until()

    assert until(1, None) is None  # the first page, which leads the channel into the log
    assert until(1, 1000.9) == 1000  # at once: a restart would look at it as if it had never been read
    assert until(REFRESH_SECONDS - 1, 1599.0) == 1000  # not yet
    assert until(1, 1601.5) == 1601
    assert until(REFRESH_SECONDS, 1601.9) == 1601  # no news
    assert until(1, None) == 1601
    assert [idle.batches, idle.offsets[-1].spans] == [3, {}]


def test_a_run_that_is_shorter_than_the_time_between_two_such_batches_makes_one() -> None:
    written = COMMITTED_US / 1e6
    first = Idle(C)
    first.look(C, written, [numbered_record("a", 1)])
    first.plan()
    first.look(C, written + 1)
    assert first.until() is None  # the record tells the time

    second = Idle(C, start=first.offsets[-1])
    second.look(C, written + REFRESH_SECONDS - 1)
    assert second.until() is None
    second.look(C, written + REFRESH_SECONDS)
    assert second.until() == int(written + REFRESH_SECONDS)

    third = Idle(C, start=second.offsets[-1])
    third.look(C, written + 2 * REFRESH_SECONDS - 1)
    assert third.until() == int(written + REFRESH_SECONDS)
    third.look(C, written + 2 * REFRESH_SECONDS)
    assert third.until() == int(written + 2 * REFRESH_SECONDS)


def test_a_channel_that_never_had_a_record_is_told_of_at_once() -> None:
    run = Idle(C)

    run.look(C, None)
    assert run.until() is None
    run.read[C] = 1000.0  # it is known once the page is confirmed, and no other one has to come

    assert run.until() == 1000


def test_idle_channels_share_their_batches() -> None:
    names = [ChannelId(f"c{number}") for number in range(20)]
    idle = Idle(*names)
    for number, name in enumerate(
        names
    ):  # a table that comes to rest: each channel has its last record at its own time
        idle.now = number * REFRESH_SECONDS / len(names)
        written = SequenceInfo(0, round(idle.now * 1e6), number)
        idle.look(name, idle.now, [record((("id", number),), sequence=written)])
        idle.plan()
    calm = idle.batches

    for _ in range(12 * 20):
        idle.now += REFRESH_SECONDS / 20
        for name in names:
            idle.look(name, idle.now)
        idle.plan()

    assert idle.batches - calm <= 12 + 2
    told = [idle.offsets[-1].channels[name].position.until for name in names]
    assert all(until is not None and idle.now - until <= REFRESH_SECONDS for until in told)


def elsewhere(world: World) -> None:
    """The channel is opened at a checkpoint that is not of this query."""
    world.read(2)
    world.batch(LARGE)
    world.ledger.abandon(C)
    world.checkpoint = Token("7#99")
    world.open()


def test_a_checkpoint_of_another_client_is_refused_with_its_first_page() -> None:
    world = World(stream(9))
    elsewhere(world)

    with pytest.raises(SinkRejected, match="another client consumes the tunnel"):
        world.read(1)


def test_a_checkpoint_that_the_service_has_moved_behind_a_gap_is_that_of_the_query() -> None:
    world = World(stream(9))
    elsewhere(world)
    world.gap = Gap(10.5, 20.5)

    world.read(1)
    world.batch(LARGE)

    assert world.batches[2] == world.log[7:8]
    assert world.logged[-1].channels[C].position.token == world.token


def test_the_log_tells_of_a_gap_from_the_batch_behind_it_on() -> None:
    """The process that has passed it may be killed before it tells, and no other one finds it."""
    world = World(stream(9))
    world.read(2)
    world.batch(LARGE)
    world.gap = Gap(10.5, 20.5)
    world.read(2)
    world.batch(LARGE)
    world.restart(2)
    world.gap = None
    world.read(2)
    world.batch(LARGE)

    told = [offset.channels[C].position.gap for offset in world.logged[1:]]
    assert told == [None, Gap(10, 21), Gap(10, 21)]


def test_a_gap_that_is_found_again_with_the_same_times_counts() -> None:
    """Nothing behind it was confirmed when the channel was taken away, and the service gives another checkpoint."""
    world = World(stream(9), gap=Gap(10.0, 20.0))
    elsewhere(world)
    world.gap = Gap(10.0, 20.0)

    world.read(1)
    world.batch(LARGE)

    assert world.batches[2] == world.log[7:8]


def test_a_gap_from_before_says_nothing_of_who_has_moved_a_checkpoint() -> None:
    world = World(stream(9), gap=Gap(1.0, 2.0))
    elsewhere(world)

    with pytest.raises(SinkRejected, match="another client consumes the tunnel"):
        world.read(1)


def test_records_out_of_order_are_refused_and_not_left_out() -> None:
    world = World(stream(3))
    world.read(2)

    with pytest.raises(SinkRejected, match="not behind the one before it"):
        world.ledger.take(C, GivenPage(2, Token("2"), Token("3"), stream(1), lambda: None))
