"""One task of the snapshot: rows, slices, cursors, and the time limit."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ots_tunnel.client.table_calls import RangePage, RowChange, RowOutcome, StreamDescription, TableDescription
from ots_tunnel.errors import ConnectionLost, OwnershipLost, SinkError, SinkRejected
from ots_tunnel.model import Action, Marker, PrimaryKey
from ots_tunnel.protocol.key_order import key_order
from ots_tunnel.protocol.plainbuffer.codec import decode_row, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.tags import HEADER_BYTES
from ots_tunnel.protocol.record import Record
from ots_tunnel.snapshot.copied import Report
from ots_tunnel.snapshot.document import SnapshotConfig
from ots_tunnel.snapshot.splits import Split
from ots_tunnel.spark.failures import refusal_of
from ots_tunnel.spark.snapshot.copying import SplitCopy, TaskFence
from tests.support.documents.snapshot_document import DOCUMENT

CONFIG = SnapshotConfig.model_validate({**DOCUMENT, "writeDeadlineSeconds": 20})
NOW = 1_700_000_000.0
LOW, HIGH = (("k", Marker.INF_MIN),), (("k", Marker.INF_MAX),)
WHOLE = Split(4, LOW, HIGH)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Source:
    """Rows in the order of their keys, in pages; answers like SyncTableClient.

    Args:
        max_versions: what each description gives, the last one for good.
    """

    def __init__(self, *rows: bytes, page_rows: int = 3, max_versions: Sequence[int] = (3,)) -> None:
        self._rows = [(key_order(decode_row(row).primary_key), row) for row in rows]
        self._page_rows = page_rows
        self._max_versions = list(max_versions)
        self.starts: list[PrimaryKey] = []
        self.asked: list[int] = []
        self.on_page: Callable[[], None] = lambda: None

    def get_range(self, table: str, start: PrimaryKey, end: PrimaryKey, *, max_versions: int, **_: Any) -> RangePage:
        self.on_page()
        self.starts.append(start)
        self.asked.append(max_versions)
        found = [row for key, row in self._rows if key_order(start) <= key < key_order(end)]
        page, rest = found[: self._page_rows], found[self._page_rows :]
        following = decode_row(rest[0]).primary_key if rest else None
        header = page[0][:HEADER_BYTES] if page else b""
        return RangePage(header + b"".join(row[HEADER_BYTES:] for row in page), following)

    def describe_table(self, table: str) -> TableDescription:
        versions = self._max_versions.pop(0) if len(self._max_versions) > 1 else self._max_versions[0]
        return TableDescription(table, (), -1, versions, 86_400, StreamDescription(False))


class Destination:
    """Takes writes like SyncTableClient."""

    def __init__(self, time_to_live: int = -1, on_write: Callable[[], None] = lambda: None) -> None:
        self.written: list[RowChange] = []
        self.requests: list[tuple[int, float]] = []
        self.time_to_live = time_to_live
        self._on_write = on_write

    def describe_table(self, table: str) -> TableDescription:
        return TableDescription(table, (), self.time_to_live, 3, 86_400, StreamDescription(False))

    def batch_write(
        self, table: str, rows: Sequence[RowChange], *, timeout: float, before_send: Callable[[], None]
    ) -> list[RowOutcome]:
        self._on_write()
        before_send()
        self.requests.append((len(rows), timeout))
        self.written += rows
        return [RowOutcome(None) for _ in rows]

    def repeat_records(self, table: str, records: Sequence[Record], **arguments: Any) -> list[RowOutcome] | None:
        rows = [RowChange(record.action, record.write_body) for record in records]
        outcomes = self.batch_write(table, rows, **arguments)
        return None if all(outcome.code is None for outcome in outcomes) else outcomes


def row(key: int, *columns: Column) -> bytes:
    return encode_row((("k", key),), columns or (Column("c", key, 1_699_999_999_000),))


def copy(
    destination: Destination, source: Source, clock: Clock | None = None, split: Split = WHOLE, **limits: Any
) -> Report:
    fence = TaskFence(600, 20, clock or Clock())
    config = CONFIG.model_copy(update={"delivery": CONFIG.delivery.model_copy(update=limits)})
    return SplitCopy(config, source, destination, fence, now=lambda: NOW).run(split, 3)


def test_every_row_is_put_and_the_split_is_finished() -> None:
    destination, rows = Destination(), [row(i) for i in range(8)]

    assert copy(destination, Source(*rows)) == Report(4, LOW, None, 8, 0)

    assert [change.body for change in destination.written] == rows
    assert {change.action for change in destination.written} == {Action.PUT}
    assert {timeout for _, timeout in destination.requests} == {20}


def test_an_empty_split_is_finished() -> None:
    assert copy(Destination(), Source()) == Report(4, LOW, None, 0, 0)


def test_requests_hold_as_much_as_the_document_allows() -> None:
    destination = Destination()

    copy(destination, Source(*[row(i) for i in range(450)], page_rows=450))

    assert [count for count, _ in destination.requests] == [200, 200, 50]


def test_a_task_ends_after_its_slice_and_the_next_one_resumes_inside_the_split() -> None:
    clock = Clock()

    def slow() -> None:
        clock.now += 25

    destination, rows = Destination(on_write=slow), [row(i) for i in range(10)]
    source, split, tasks = Source(*rows, page_rows=9), WHOLE, []
    for _ in range(9):
        report = copy(destination, source, clock, split, batch_max_rows=1)
        tasks.append(report)
        if report.cursor is None:
            break
        split = Split(4, report.cursor, HIGH)

    assert [report.cursor for report in tasks] == [(("k", 3),), (("k", 6),), (("k", 9),), None]
    assert [change.body for change in destination.written] == rows


def test_a_split_that_is_slower_than_every_deadline_is_finished() -> None:
    config = SnapshotConfig.model_validate(
        {**DOCUMENT, "writeDeadlineSeconds": 1, "splits": {"deadlineSeconds": 10}, "delivery": {"batchMaxRows": 2}}
    )
    clock = Clock()

    def slow() -> None:
        clock.now += 3

    destination, rows = Destination(on_write=slow), [row(i) for i in range(41)]
    cursor: PrimaryKey | None = LOW
    for _ in range(21):
        assert cursor is not None
        task = SplitCopy(config, Source(*rows, page_rows=41), destination, TaskFence(10, 1, clock), now=lambda: NOW)
        cursor = task.run(Split(4, cursor, HIGH), 3).cursor
        if cursor is None:
            break

    assert cursor is None
    assert [change.body for change in destination.written] == rows


@pytest.mark.parametrize("seed", range(20))
def test_a_copy_whose_tasks_end_at_random_points_is_whole(seed: int) -> None:
    entropy, clock = random.Random(seed), Clock()

    class Killed(BaseException):
        """The process is gone."""

    def befall() -> None:
        clock.now += entropy.choice([0, 1, 30, 200])
        if entropy.random() < 0.1:
            raise entropy.choice([Killed, ConnectionLost, OwnershipLost])("befallen")

    rows = [row(i) for i in range(60)]
    destination, source = Destination(on_write=befall), Source(*rows, page_rows=7)
    source.on_page = befall
    cursor: PrimaryKey | None = LOW
    tries = 0
    while cursor is not None and tries < 1_000:
        tries += 1
        try:
            cursor = copy(destination, source, clock, Split(4, cursor, HIGH), batch_max_rows=2).cursor
        except (Killed, ConnectionLost, OwnershipLost):
            continue

    assert cursor is None
    assert {change.body for change in destination.written} == set(rows)


def test_an_error_after_the_first_rows_ends_the_task_before_it() -> None:
    source, destination = Source(*[row(i) for i in range(9)]), Destination()

    def fail() -> None:
        if len(source.starts) == 2:
            raise ConnectionLost("gone")

    source.on_page = fail

    assert copy(destination, source) == Report(4, LOW, (("k", 6),), 6, 0)
    with pytest.raises(ConnectionLost):
        copy(destination, source, split=Split(4, (("k", 6),), HIGH))


def test_a_refused_row_is_met_by_the_task_that_begins_with_it() -> None:
    class Refusing(Destination):
        def batch_write(self, table: str, rows: Sequence[RowChange], **arguments: Any) -> list[RowOutcome]:
            super().batch_write(table, rows, **arguments)
            bad = [decode_row(change.body).primary_key == (("k", 4),) for change in rows]
            return [RowOutcome("OTSParameterInvalid", "no") if refused else RowOutcome(None) for refused in bad]

    source = Source(*[row(i) for i in range(9)])
    report = copy(Refusing(), source, batch_max_rows=2)
    assert report.cursor == (("k", 3),)

    with pytest.raises(SinkRejected, match="no") as caught:
        copy(Refusing(), source, split=Split(4, report.cursor, HIGH), batch_max_rows=2)
    assert "4" in caught.value.keys[0]


@pytest.mark.parametrize(
    ("described", "read"),
    [((3,), [3, 3]), ((1,), [3, 3]), ((4, 4), [3, 3, 4, 4]), ((4, 9, 5), [3, 3, 4, 4, 9, 9])],
)
def test_rows_are_read_again_while_their_table_keeps_more_versions(described: tuple[int, ...], read: list[int]) -> None:
    source, destination = Source(row(1), row(2), page_rows=1, max_versions=described), Destination()

    report = copy(destination, source)

    assert source.asked == read
    assert report == Report(4, LOW, None, 2, 0)
    assert len(destination.written) == len(read)


def test_rows_with_too_many_cells_go_out_in_pieces() -> None:
    destination = Destination()
    wide = row(1, *(Column(f"c{i:03}", i, 1000 + v) for i in range(500) for v in range(3)))

    assert copy(destination, Source(wide)).rows == 2
    assert [change.action for change in destination.written] == [Action.UPDATE, Action.UPDATE]
    cells = [column for change in destination.written for column in decode_row(change.body).columns]
    assert cells == list(decode_row(wide).columns)


def stored_cells(changes: Sequence[RowChange]) -> set[Column]:
    """Cells of one row after these changes."""
    cells: set[Column] = set()
    for change in changes:
        columns = set(decode_row(change.body).columns)
        cells = columns if change.action is Action.PUT else cells | columns
    return cells


def test_an_earlier_attempt_that_writes_late_takes_no_cell_of_a_wide_row_away() -> None:
    wide = row(1, *(Column(f"c{i:04}", i, 1000) for i in range(1500)))
    earlier, later = Destination(), Destination()
    for destination in (earlier, later):
        copy(destination, Source(wide))

    for sent in range(1, len(earlier.written) + 1):
        # its executor is killed, or its fence closes, after some of its changes
        assert stored_cells([*later.written, *earlier.written[:sent]]) == set(decode_row(wide).columns)


def test_an_earlier_attempt_with_a_shorter_time_to_live_takes_no_cell_away() -> None:
    old, new = Column("old", 1, int((NOW - 7 * 86_400) * 1000)), Column("new", 2, int(NOW * 1000))
    earlier, later = Destination(time_to_live=86_400), Destination()
    for destination in (earlier, later):
        copy(destination, Source(row(1, new, old)))

    assert stored_cells([*later.written, *earlier.written]) == {old, new}


def test_an_earlier_attempt_for_which_all_cells_have_expired_leaves_the_row_alone() -> None:
    old = Column("old", 1, int((NOW - 7 * 86_400) * 1000))
    earlier, later = Destination(time_to_live=86_400), Destination()
    for destination in (earlier, later):
        copy(destination, Source(row(1, old)))

    # the time to live was raised between both, and the earlier one writes last
    assert stored_cells([*later.written, *earlier.written]) == {old}


def test_cells_past_their_lifetime_are_left_out() -> None:
    destination = Destination(time_to_live=86_400)
    old, new = Column("c", 1, int((NOW - 86_400) * 1000)), Column("c", 2, int(NOW * 1000))

    assert copy(destination, Source(row(1, new, old), row(2, new), row(3, old, old))) == Report(4, LOW, None, 2, 3)

    assert [decode_row(change.body).columns for change in destination.written] == [(new,), (new,)]
    assert [change.action for change in destination.written] == [Action.UPDATE, Action.PUT]


@pytest.mark.parametrize("raised", [-1, 8 * 86_400])
def test_rows_whose_omitted_cells_live_again_are_not_reported(raised: int) -> None:
    destination = Destination(time_to_live=86_400)
    old, new = Column("c", 1, int((NOW - 7 * 86_400) * 1000)), Column("c", 2, int(NOW * 1000))
    source = Source(row(1, new, old))
    source.on_page = lambda: setattr(destination, "time_to_live", raised)

    with pytest.raises(SinkError, match=f"1 cells past .* 86400 s were left out, but it was changed to {raised} s"):
        copy(destination, source)


def test_a_time_to_live_that_is_lowered_changes_nothing() -> None:
    destination, source = Destination(time_to_live=2 * 86_400), Source(row(1, Column("c", 1, 1000)))
    source.on_page = lambda: setattr(destination, "time_to_live", 86_400)

    assert copy(destination, source) == Report(4, LOW, None, 0, 1)


class Living(Destination):
    """Refuses cells that are past its time to live when a request arrives, like the service."""

    def __init__(self, time_to_live: int, clock: Clock, **arguments: Any) -> None:
        super().__init__(time_to_live, **arguments)
        self._clock = clock

    def batch_write(self, table: str, rows: Sequence[RowChange], **arguments: Any) -> list[RowOutcome]:
        super().batch_write(table, rows, **arguments)
        oldest = (self._clock.now - self.time_to_live) * 1000 if self.time_to_live != -1 else 0
        dead = [any((cell.timestamp_ms or 0) < oldest for cell in decode_row(change.body).columns) for change in rows]
        return [RowOutcome("OTSParameterInvalid", "expired") if refused else RowOutcome(None) for refused in dead]


@pytest.mark.parametrize(("time_to_live", "lowered"), [(86_400, 86_400), (-1, 86_400), (10 * 86_400, 86_400)])
def test_cells_that_pass_their_time_to_live_on_their_way_are_left_out_by_the_next_attempt(
    time_to_live: int, lowered: int
) -> None:
    clock = Clock()
    clock.now = NOW

    def wait() -> None:  # the destination is busy for two minutes, or its owner lowers the time to live
        clock.now += 120
        destination.time_to_live = lowered

    destination = Living(time_to_live, clock, on_write=wait)
    dying, new = Column("c", 1, int((NOW - 86_400 + 100) * 1000)), Column("c", 2, int(NOW * 1000))
    task = SplitCopy(CONFIG, Source(row(1, new, dying)), destination, TaskFence(600, 20, Clock()), now=clock)

    with pytest.raises(SinkError, match="have passed the destination's time to live on their way: OTSParam") as caught:
        task.run(WHOLE, 3)
    assert refusal_of(4, caught.value) is None, "another attempt can cure it"

    again = SplitCopy(CONFIG, Source(row(1, new, dying)), destination, TaskFence(600, 20, Clock()), now=clock)
    assert again.run(WHOLE, 3) == Report(4, LOW, None, 1, 1)


def test_a_row_that_is_refused_beside_omitted_cells_is_refused_for_good() -> None:
    class Refusing(Destination):
        def batch_write(self, table: str, rows: Sequence[RowChange], **arguments: Any) -> list[RowOutcome]:
            return [RowOutcome("OTSParameterInvalid", "too long") for _ in rows]

    old, new = Column("c", 1, int((NOW - 86_400) * 1000)), Column("c", 2, int(NOW * 1000))

    with pytest.raises(SinkRejected, match="too long"):
        copy(Refusing(time_to_live=86_400), Source(row(1, new, old)))


def test_a_task_that_was_paused_too_long_sends_nothing() -> None:
    clock = Clock()

    def pause() -> None:
        clock.now += 580

    destination = Destination(on_write=pause)

    with pytest.raises(OwnershipLost, match="no request was stored within 600 s"):
        copy(destination, Source(row(1)), clock)
    assert destination.written == []


def test_the_limit_is_the_deadline_less_the_write_deadline() -> None:
    clock = Clock()
    fence = TaskFence(600, 20, clock)
    clock.now += 579.9
    fence.check()
    clock.now += 0.1
    with pytest.raises(OwnershipLost):
        fence.check()
