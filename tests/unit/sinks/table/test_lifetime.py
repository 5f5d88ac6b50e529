"""When a cell may be left out as expired, and what of a refused change is sent again."""

from __future__ import annotations

import asyncio

import pytest

from ots_tunnel.errors import ConnectionLost
from ots_tunnel.model import Action, SequenceInfo
from ots_tunnel.protocol.plainbuffer.codec import decode_row, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.feed import Feed, NotYetError
from ots_tunnel.sinks.grouping import Grouping, Limits
from ots_tunnel.sinks.slices import Turns
from ots_tunnel.sinks.table.batch_write import Refusal
from ots_tunnel.sinks.table.lifetime import CLOCK_MARGIN, MAX_AGE, SPACING, Described, Lifetime, nothing_to_revise
from ots_tunnel.sinks.table.row_change import EXPIRY_MARGIN, Change, Omissions, unaltered_change

pytestmark = pytest.mark.looptime

DAY = 86_400
T0 = 1_700_000_000.0


class Table:
    """A destination that is described."""

    def __init__(self, time_to_live: int = DAY) -> None:
        self.time_to_live = time_to_live
        #: The service's clock, where the answer tells it.
        self.clock: Clock | None = None
        self.times: list[float] = []
        self.error: Exception | None = None

    async def describe(self) -> Described:
        self.times.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.01)
        if self.error is not None:
            raise self.error
        return Described(self.time_to_live, None if self.clock is None else self.clock())


class Clock:
    now = T0

    def __call__(self) -> float:
        return self.now


def record(*ages: float, action: Action = Action.PUT, committed: float | None = None) -> Record:
    """A row with cells as old as this at T0; `committed` makes it a change of a stream."""
    cells = tuple(Column(f"c{index}", 1, int((T0 - age) * 1000)) for index, age in enumerate(ages))
    sequence = None if committed is None else SequenceInfo(1, int(committed * 1e6), 0)
    return Record(action, encode_row((("pk", 1),), cells, sequence=sequence))


async def described(table: Table, clock: Clock | None = None) -> Lifetime:
    lifetime = Lifetime(table.describe, clock or Clock(), Omissions())
    await lifetime.renew(lifetime.now)
    return lifetime


def cells_of(changes: list[Change]) -> list[str]:
    return [column.name for change in changes for column in decode_row(change.row.body).columns]


def made(lifetime: Lifetime, of: Record) -> list[str]:
    return cells_of(list(lifetime.changes(of, Limits(), lifetime.now)))


OLD = 2 * DAY


async def test_an_old_record_needs_no_further_description() -> None:
    lifetime = await described(Table())
    assert made(lifetime, record(0, OLD)) == ["c0"]
    assert made(lifetime, record(0, OLD, committed=T0 - CLOCK_MARGIN - 1)) == ["c0"]


async def test_a_record_that_may_be_younger_than_the_description_needs_another_one() -> None:
    table = Table()
    lifetime = await described(table)
    with pytest.raises(NotYetError) as not_yet:
        made(lifetime, record(0, OLD, committed=T0))
    table.time_to_live = -1
    await not_yet.value.wait()
    assert made(lifetime, record(0, OLD, committed=T0)) == ["c0", "c1"]


async def test_a_description_that_began_after_the_record_came_suffices() -> None:
    lifetime = await described(Table())
    arrived = lifetime.now
    await lifetime.renew(arrived)
    changes = lifetime.changes(record(0, OLD, committed=T0 + 1000), Limits(), arrived)
    assert cells_of(list(changes)) == ["c0"]


@pytest.mark.parametrize("passed", [MAX_AGE + 1, -1])
async def test_an_old_description_is_renewed(passed: float) -> None:
    clock = Clock()
    lifetime = await described(Table(), clock)
    clock.now = T0 + passed
    with pytest.raises(NotYetError):
        made(lifetime, record(0, OLD))
    assert made(lifetime, record(0)) == ["c0"], "nothing is left out of this one"


@pytest.mark.parametrize("passed", [MAX_AGE + 1, -1])
async def test_a_description_from_after_the_record_serves_no_longer_than_another_one(passed: float) -> None:
    """A page may wait for hours, while the destination is busy."""
    table, clock = Table(), Clock()
    lifetime = await described(table, clock)
    arrived = lifetime.now
    await lifetime.renew(arrived)
    clock.now, table.time_to_live = T0 + passed, -1

    with pytest.raises(NotYetError) as not_yet:
        list(lifetime.changes(record(0, OLD), Limits(), arrived))
    await not_yet.value.wait()

    assert cells_of(list(lifetime.changes(record(0, OLD), Limits(), arrived))) == ["c0", "c1"]


async def test_a_description_that_takes_longer_than_it_serves_is_one() -> None:
    """Tries that are repeated while the destination is busy may take minutes."""
    table, clock = Table(), Clock()

    async def slow() -> Described:
        clock.now += MAX_AGE + 10
        return await table.describe()

    lifetime = Lifetime(slow, clock, Omissions())
    arrived = lifetime.now
    await lifetime.renew(arrived)

    assert cells_of(list(lifetime.changes(record(0, OLD), Limits(), arrived))) == ["c0"]


@pytest.mark.parametrize("seconds", [-600, 600], ids=["behind", "ahead"])
async def test_the_service_s_clock_decides_what_has_expired(seconds: float) -> None:
    """The worker's may differ by fifteen minutes."""
    table, own = Table(), Clock()
    table.clock = Clock()
    own.now = T0 + seconds

    lifetime = await described(table, own)

    assert made(lifetime, record(0, DAY - 300, DAY - 30)) == ["c0", "c1"]
    committed = record(0, DAY - 30, committed=T0 - CLOCK_MARGIN - 1)
    arrived = lifetime.now
    own.now += 1
    assert cells_of(list(lifetime.changes(committed, Limits(), arrived))) == ["c0"]
    with pytest.raises(NotYetError):
        list(lifetime.changes(record(0, DAY - 30, committed=T0 - CLOCK_MARGIN + 2), Limits(), arrived))


async def test_descriptions_are_shared_and_spaced() -> None:
    table = Table()
    lifetime = await described(table)
    since = lifetime.now
    await asyncio.gather(*(lifetime.renew(since) for _ in range(20)))
    assert len(table.times) == 2
    assert table.times[1] - table.times[0] == pytest.approx(SPACING)


async def test_a_failed_description_changes_nothing() -> None:
    table = Table()
    lifetime = await described(table)
    table.error, since = ConnectionLost("gone"), lifetime.now
    with pytest.raises(ConnectionLost):
        await lifetime.renew(since)
    table.error = None
    await lifetime.renew(since)
    assert len(table.times) == 3


async def test_a_feed_waits_for_the_description() -> None:
    table = Table()
    lifetime = await described(table)
    records = [record(0), record(0, OLD, committed=T0), record(0)]
    grouping: Grouping[Change] = Grouping(Limits())
    arrived = lifetime.now
    feed = Feed(records, lambda each: lifetime.changes(each, Limits(), arrived), grouping, Limits(), Turns())
    await feed.fill()
    assert feed.is_empty
    assert (grouping.held_rows, len(table.times)) == (3, 2)


def refusal(of: Record, code: str = "OTSParameterInvalid") -> Refusal:
    return Refusal(unaltered_change(of), code, "Invalid timestamp.")


async def test_a_refused_change_is_sent_again_without_expired_cells() -> None:
    table = Table(-1)
    lifetime = await described(table)
    table.time_to_live = DAY
    both, update = refusal(record(0, OLD)), refusal(record(OLD, action=Action.UPDATE))
    put, living = refusal(record(OLD)), refusal(record(0))
    gone = refusal(Record(Action.DELETE, encode_row((("pk", 1),), (), delete=True)))

    revisions = await lifetime.revise([both, update, put, living, gone])

    assert [revision.refusal for revision in revisions] == [both, update, put]
    assert [None if r.change is None else cells_of([r.change]) for r in revisions] == [["c0"], None, []]
    sent = revisions[0].change
    assert sent is not None
    assert (sent.key, sent.size, sent.record) == (both.change.key, both.change.size, both.change.record)


@pytest.mark.parametrize("time_to_live", [-1, DAY, 7 * DAY])
async def test_young_cells_are_refused_for_another_reason(time_to_live: int) -> None:
    """No time to live is shorter than a day."""
    table = Table(time_to_live)
    lifetime = await described(table)
    gone = Record(Action.DELETE, encode_row((("pk", 1),), (), delete=True))

    assert not await lifetime.revise([refusal(record(0, DAY - EXPIRY_MARGIN - 1)), refusal(gone)])
    assert len(table.times) == 1


async def test_a_table_with_a_shorter_time_to_live_than_the_service_allows_is_believed() -> None:
    lifetime = await described(Table(600))

    (revision,) = await lifetime.revise([refusal(record(0, 700))])
    assert revision.change is not None
    assert cells_of([revision.change]) == ["c0"]


@pytest.mark.parametrize(("code", "time_to_live", "calls"), [("OTSOutOfRowSizeLimit", DAY, 1), ("", -1, 2)])
async def test_other_refusals_stand(code: str, time_to_live: int, calls: int) -> None:
    table = Table(time_to_live)
    lifetime = await described(table)
    assert not await lifetime.revise([refusal(record(OLD), code or "OTSParameterInvalid")])
    assert len(table.times) == calls


async def test_a_writer_without_a_destination_to_ask_revises_nothing() -> None:
    assert await nothing_to_revise([refusal(record(OLD))]) == []


async def test_the_text_of_a_lifetime() -> None:
    assert repr(await described(Table())) == "Lifetime(86400 s)"
