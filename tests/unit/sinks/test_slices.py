"""The work on a page between two rounds of the event loop is bounded, in every sink and in the middleware."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from ots_tunnel.model import Action, ChannelId, ChannelType, SequenceInfo
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch, json_bytes, stdout
from ots_tunnel.sinks.cloud_events import Event, Events
from ots_tunnel.sinks.count import CountSink
from ots_tunnel.sinks.feed import HELD_BYTES, Feed, SliceFeed
from ots_tunnel.sinks.grouping import Grouping, Limits
from ots_tunnel.sinks.json_bytes import PORTION_BYTES
from ots_tunnel.sinks.kafka.shipment import PARCELS_BYTES, Shipment
from ots_tunnel.sinks.middleware import selection
from ots_tunnel.sinks.middleware.base import behind
from ots_tunnel.sinks.middleware.selection import TWIN_BYTES, Selection
from ots_tunnel.sinks.middleware.transform import Omitted, Transform
from ots_tunnel.sinks.middleware.transformed import Transformed
from ots_tunnel.sinks.slices import SLICE_BYTES, SLICE_RECORDS, Turns, slices
from ots_tunnel.sinks.table.row_change import Change, unaltered_change
from tests.support.guards import OpenGuard

CHANNEL = ChannelId("c1")


def narrow(count: int) -> list[Record]:
    """Records of one small cell."""
    return [_record(number, (Column("v", number, 5),)) for number in range(count)]


def wide(count: int) -> list[Record]:
    """Records of 500 small cells."""
    return [_record(number, tuple(Column(f"c{cell}", True, 5) for cell in range(500))) for number in range(count)]


def _record(number: int, columns: Sequence[Column]) -> Record:
    return Record(Action.PUT, encode_row((("id", number),), columns, sequence=SequenceInfo(0, 1_000_000 + number, 0)))


KINDS = pytest.mark.parametrize("records", [narrow(3000), wide(40)], ids=["narrow", "wide"])


class Rounds:
    """Counts the work that is done in each round of the event loop."""

    def __init__(self) -> None:
        self.most_records = self.most_bytes = 0
        self._records = self._bytes = 0
        self.total = 0

    def note(self, record: Record) -> None:
        """A record was worked on."""
        if self._records == 0:
            asyncio.get_running_loop().call_soon(self._end)
        self._records += 1
        self._bytes += record.size
        self.total += 1

    def _end(self) -> None:
        self.most_records = max(self.most_records, self._records)
        self.most_bytes = max(self.most_bytes, self._bytes)
        self._records = self._bytes = 0

    def check(self, total: int, most_records: int = SLICE_RECORDS, most_bytes: int = SLICE_BYTES) -> None:
        """Every record was worked on, a slice per round at most."""
        largest = 20_000
        assert self.total == total
        assert self.most_records <= most_records
        assert self.most_bytes <= most_bytes + largest


@KINDS
def test_slices_hold_every_record_and_are_bounded(records: list[Record]) -> None:
    parts = list(slices(records))

    assert [record for part in parts for record in part] == records
    assert all(len(part) <= SLICE_RECORDS for part in parts)
    assert all(sum(record.size for record in part) <= SLICE_BYTES for part in parts)


def test_a_page_of_usual_size_is_one_slice_and_an_empty_one_none() -> None:
    records = narrow(200)

    assert [part is records for part in slices(records)] == [True]
    assert list(slices([])) == []


@KINDS
@pytest.mark.parametrize("by_the_reference", [False, True])
async def test_a_transform_works_on_a_part_per_round(
    records: list[Record], by_the_reference: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds, real = Rounds(), Selection.part
    if by_the_reference:
        monkeypatch.setattr(selection, "native", None)

    def noted(self: Selection, all_of_them: list[Record], first: int, omitted: Omitted) -> tuple[list[Record], int]:
        passed, end = real(self, all_of_them, first, omitted)
        for record in all_of_them[first:end]:
            rounds.note(record)
        return passed, end

    monkeypatch.setattr(Selection, "part", noted)
    sink = CountSink()
    await behind(Transformed(Transform(exclude=frozenset((b"gone",)))), sink).write(_batch(records), OpenGuard())
    await asyncio.sleep(0)

    if selection.native is None:
        rounds.check(len(records))
    else:
        rounds.check(len(records), most_records=TWIN_BYTES, most_bytes=TWIN_BYTES)
    assert sink.rows == len(records)


@KINDS
@pytest.mark.parametrize("by_the_reference", [False, True])
async def test_stdout_works_on_a_part_per_round(
    records: list[Record], by_the_reference: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds, printed = Rounds(), list[bytes]()
    real = stdout.next_lines
    if by_the_reference:
        monkeypatch.setattr(json_bytes, "native", None)

    def noted(all_of_them: list[Record], first: int, channel_id: ChannelId) -> tuple[bytes, int]:
        lines, end = real(all_of_them, first, channel_id)
        for record in all_of_them[first:end]:
            rounds.note(record)
        return lines, end

    monkeypatch.setattr(stdout, "next_lines", noted)

    class Lines:
        def writelines(self, lines: Any, /) -> None:
            printed.extend(lines)

        def flush(self) -> None: ...

    await stdout.StdoutSink(Lines()).write(_batch(records), OpenGuard())

    most = {} if json_bytes.native is None else {"most_records": PORTION_BYTES, "most_bytes": PORTION_BYTES}
    rounds.check(len(records), **most)
    assert [json.loads(line)["key"]["id"] for line in b"".join(printed).splitlines()] == list(range(len(records)))


@KINDS
async def test_changes_are_made_a_slice_per_round_and_as_requests_need_them(records: list[Record]) -> None:
    rounds, turns = Rounds(), Turns()
    grouping: Grouping[Change] = Grouping(Limits())

    def changes(record: Record) -> tuple[Change]:
        rounds.note(record)
        return (unaltered_change(record),)

    source: Feed[Change] = Feed(records, changes, grouping, Limits(), turns)
    taken = 0
    while True:
        await source.fill()
        assert grouping.held_rows <= Limits().max_rows + SLICE_RECORDS
        portion = grouping.take()
        if not portion:
            break
        taken += len(portion)
        grouping.settle(portion)
    await asyncio.sleep(0)

    rounds.check(len(records))
    assert taken == len(records)


@KINDS
async def test_records_that_make_no_change_are_looked_at_a_slice_per_round(records: list[Record]) -> None:
    rounds, grouping = Rounds(), Grouping[Change](Limits())

    def expired(record: Record) -> tuple[()]:
        rounds.note(record)
        return ()

    await Feed(records, expired, grouping, Limits(), Turns()).fill()
    await asyncio.sleep(0)

    rounds.check(len(records))
    assert grouping.held_rows == 0


@KINDS
async def test_events_are_made_a_slice_at_a_time_and_as_requests_need_them(records: list[Record]) -> None:
    rounds, limits = Rounds(), Limits()
    grouping: Grouping[Event] = Grouping(limits)
    events = Events(CHANNEL, "ots://i/t", "t-1")

    def make(some: list[Record], first: int) -> list[Event]:
        made = events.of(some, first)
        for event in made:
            rounds.note(event.record)
        return made

    feed = SliceFeed(records, make, grouping, limits, Turns())
    taken: list[Event] = []
    while True:
        await feed.fill()
        assert grouping.held_rows <= limits.max_rows + SLICE_RECORDS
        portion = grouping.take()
        if not portion:
            break
        taken += portion
        grouping.settle(portion)
    await asyncio.sleep(0)

    assert feed.is_empty
    assert [event.record for event in taken] == records
    # what the compiled twin makes costs less than an eighth of what the reference makes
    assert rounds.most_records <= SLICE_RECORDS
    assert rounds.most_bytes <= PORTION_BYTES + 20_000


async def test_no_more_than_the_limit_is_held_while_requests_are_under_way() -> None:
    grouping: Grouping[Change] = Grouping(Limits(max_rows=10, max_bytes=4_000_000))
    large = [_record(number, (Column("v", "x" * 500_000, 5),)) for number in range(40)]
    source: Feed[Change] = Feed(
        large, lambda record: (unaltered_change(record),), grouping, Limits(max_rows=100), Turns()
    )

    await source.fill()

    assert HELD_BYTES <= grouping.held_bytes <= HELD_BYTES + 600_000
    assert not source.is_empty


async def test_several_channels_work_on_one_slice_per_round_together() -> None:
    rounds, turns = Rounds(), Turns()

    async def work(records: list[Record]) -> None:
        await turns.next()
        async for part in turns.through(records):
            for record in part:
                rounds.note(record)

    records = narrow(2000)
    await asyncio.gather(*(work(records) for _ in range(5)))
    await asyncio.sleep(0)

    rounds.check(5 * len(records))


async def test_a_shipment_is_filled_a_slice_per_round() -> None:
    records = narrow(3000)
    shipment, stored = Shipment(records), 0

    await shipment.fill()
    while not shipment.is_done:
        portion = shipment.portion()
        stored += len(portion)
        shipment.confirmed(portion)
        await shipment.fill()

    assert stored == len(records)


async def test_a_shipment_holds_no_more_than_the_limit_while_its_parcels_are_under_way() -> None:
    large = [_record(number, (Column("v", "x" * 500_000, 5),)) for number in range(40)]
    shipment, under_way = Shipment(large), 0

    await shipment.fill()
    while portion := shipment.portion():
        under_way += sum(parcel.size for parcel in portion)
        await shipment.fill()

    assert HELD_BYTES <= under_way <= HELD_BYTES + PARCELS_BYTES + 600_000
    assert not shipment.is_done


def _batch(records: Sequence[Record]) -> Batch:
    return Batch(CHANNEL, ChannelType.STREAM, records)
