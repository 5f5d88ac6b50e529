"""One task of the snapshot: rows, splits, and the time limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from ots_tunnel.client.table_calls import RowChange, RowOutcome, StreamDescription, TableDescription
from ots_tunnel.errors import OwnershipLost, SinkError
from ots_tunnel.model import Action
from ots_tunnel.protocol.plainbuffer.codec import decode_row, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.snapshot.document import SnapshotConfig
from ots_tunnel.spark.copying import SplitWriter, TaskFence
from tests.support.snapshot_document import DOCUMENT

CONFIG = SnapshotConfig.model_validate({**DOCUMENT, "writeDeadlineSeconds": 20})
NOW = 1_700_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


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


def row(key: int, *columns: Column) -> bytes:
    return encode_row((("k", key),), columns or (Column("c", key, 1_699_999_999_000),))


def batches(*cells: tuple[int, bytes], size: int = 3) -> Iterator[Any]:
    from ots_tunnel.spark.columns import COLUMN_TYPES, build_batch

    for start in range(0, len(cells), size):
        part = cells[start : start + size]
        yield build_batch(
            (
                ("split", COLUMN_TYPES["bigint"], [split for split, _ in part]),
                ("row", COLUMN_TYPES["binary"], [row for _, row in part]),
            )
        )


def copy(destination: Destination, clock: Clock | None = None) -> SplitWriter:
    fence = TaskFence(600, 20, clock or Clock())
    return SplitWriter(CONFIG, destination, fence, now=lambda: NOW)


def test_every_row_is_put_and_every_split_reported_after_its_rows() -> None:
    destination = Destination()
    rows = [(4, row(i)) for i in range(5)] + [(4, b"")] + [(7, b"")] + [(8, row(9)), (8, b"")]

    results = []
    for split, count, _ in copy(destination).run(batches(*rows)):
        results.append((split, count, len(destination.written)))

    assert results == [(4, 5, 5), (7, 0, 5), (8, 1, 6)]
    assert [change.body for change in destination.written] == [body for _, body in rows if body]
    assert {change.action for change in destination.written} == {Action.PUT}
    assert {timeout for _, timeout in destination.requests} == {20}


def test_requests_hold_as_much_as_the_document_allows() -> None:
    destination = Destination()
    rows = [(0, row(i)) for i in range(450)] + [(0, b"")]

    assert list(copy(destination).run(batches(*rows, size=64))) == [(0, 450, 0)]
    assert [count for count, _ in destination.requests] == [200, 200, 50]


def test_a_split_without_its_end_row_is_not_done() -> None:
    with pytest.raises(EOFError, match="without its end row"):
        list(copy(Destination()).run(batches((0, row(1)))))


def test_rows_with_too_many_cells_go_out_in_pieces() -> None:
    destination = Destination()
    wide = row(1, *(Column(f"c{i:03}", i, 1000 + v) for i in range(500) for v in range(3)))

    assert list(copy(destination).run(batches((0, wide), (0, b"")))) == [(0, 2, 0)]
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
        list(copy(destination).run(batches((0, wide), (0, b""))))

    for sent in range(1, len(earlier.written) + 1):
        # its executor is killed, or its fence closes, after some of its changes
        assert stored_cells([*later.written, *earlier.written[:sent]]) == set(decode_row(wide).columns)


def test_an_earlier_attempt_with_a_shorter_time_to_live_takes_no_cell_away() -> None:
    old, new = Column("old", 1, int((NOW - 7 * 86_400) * 1000)), Column("new", 2, int(NOW * 1000))
    earlier, later = Destination(time_to_live=86_400), Destination()
    for destination in (earlier, later):
        list(copy(destination).run(batches((0, row(1, new, old)), (0, b""))))

    assert stored_cells([*later.written, *earlier.written]) == {old, new}


def test_cells_past_their_lifetime_are_left_out() -> None:
    destination = Destination(time_to_live=86_400)
    old, new = Column("c", 1, int((NOW - 86_400) * 1000)), Column("c", 2, int(NOW * 1000))

    rows = ((0, row(1, new, old)), (0, b""), (1, row(2, new)), (1, b""), (2, row(3, old, old)), (2, b""))
    assert list(copy(destination).run(batches(*rows))) == [(0, 1, 1), (1, 1, 0), (2, 1, 2)]

    assert [decode_row(change.body).columns for change in destination.written] == [(new,), (new,), ()]
    assert [change.action for change in destination.written] == [Action.UPDATE, Action.PUT, Action.PUT]


@pytest.mark.parametrize("raised", [-1, 8 * 86_400])
def test_a_split_whose_omitted_cells_live_again_is_not_done(raised: int) -> None:
    destination = Destination(time_to_live=86_400)
    old, new = Column("c", 1, int((NOW - 7 * 86_400) * 1000)), Column("c", 2, int(NOW * 1000))

    def source() -> Iterator[Any]:
        destination.time_to_live = raised
        yield from batches((0, row(1, new, old)), (0, b""))

    with pytest.raises(SinkError, match=f"1 cells past .* 86400 s were left out, but it was changed to {raised} s"):
        list(copy(destination).run(source()))


def test_a_time_to_live_that_is_lowered_changes_nothing() -> None:
    destination = Destination(time_to_live=2 * 86_400)

    def source() -> Iterator[Any]:
        destination.time_to_live = 86_400
        yield from batches((0, row(1, Column("c", 1, 1000))), (0, b""))

    assert list(copy(destination).run(source())) == [(0, 1, 1)]


def test_a_task_that_was_paused_too_long_sends_nothing() -> None:
    clock = Clock()

    def pause() -> None:
        clock.now += 290.1

    destination = Destination(on_write=pause)
    rows = [(0, row(i)) for i in range(600)] + [(0, b"")]

    with pytest.raises(OwnershipLost, match=r"split 0: .* within 600 s: .* with 200 row changes written"):
        list(copy(destination, clock).run(batches(*rows, size=64)))
    assert len(destination.written) == 200


def test_the_limit_is_the_deadline_less_the_write_deadline() -> None:
    clock = Clock()
    fence = TaskFence(600, 20, clock)
    clock.now += 579.9
    fence.check()
    clock.now += 0.1
    with pytest.raises(OwnershipLost):
        fence.check()
