"""The fold of a mirror against a table that keeps one version: batches, snapshots, replays."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_emulator.tables.keys import KeySchema
from ots_emulator.tables.options import TableOptions
from ots_emulator.tables.table import Table
from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action, CellOp, KeyColumn, KeyType, PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import decode_row, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.spans import scan_row
from ots_tunnel.protocol.plainbuffer.tags import HEADER
from ots_tunnel.spark.lake.fold import Cell, Row, after, fold
from tests.support.lake.one_version_changes import Changes

Change = tuple[Action, tuple[Column, ...]]


class OneVersionTable:
    """The emulator's table, which keeps one version of each column."""

    def __init__(self) -> None:
        columns = (KeyColumn("carrier", KeyType.STRING), KeyColumn("flight", KeyType.INTEGER))
        self._table = Table("flights", KeySchema(columns), TableOptions(max_versions=1), now_us=0)

    def write(self, key: PrimaryKey, action: Action, cells: tuple[Column, ...]) -> None:
        sent = encode_row(key, cells, delete=action is Action.DELETE)
        place, span = self._table.schema.bound(key), scan_row(sent)
        match action:
            case Action.PUT:
                self._table.put(place, sent, span, now_us=0)
            case Action.UPDATE:
                self._table.update(place, span, now_us=0)
            case Action.DELETE:
                self._table.delete(place, span, now_us=0)

    def row(self, key: PrimaryKey) -> Row:
        image = self._table.get(self._table.schema.bound(key), now_ms=0)
        if image is None:
            return None
        cells = decode_row(HEADER + image).columns
        return {cell.name: Cell(cell.value, cell.timestamp_ms) for cell in cells}  # type: ignore[arg-type]  # it was put


def test_an_older_version_changes_nothing_and_one_version_is_deleted_where_it_is_the_present_one() -> None:
    row = {"a": Cell(1, 10)}

    row_after = after(row, Action.UPDATE, [Column("a", 2, 8), Column("b", 3, 11)])
    assert row_after == {"a": Cell(1, 10), "b": Cell(3, 11)}
    assert after(row_after, Action.UPDATE, [Column("a", None, 8, CellOp.DELETE_ONE_VERSION)]) == row_after
    assert after(row_after, Action.UPDATE, [Column("a", None, 10, CellOp.DELETE_ONE_VERSION)]) == {"b": Cell(3, 11)}
    assert after(row_after, Action.UPDATE, [Column("b", None, None, CellOp.DELETE_ALL_VERSIONS)]) == row
    assert after(row_after, Action.PUT, [Column("c", 4, 1)]) == {"c": Cell(4, 1)}
    assert after(row_after, Action.DELETE, []) is None
    assert row == {"a": Cell(1, 10)}


def test_of_two_puts_of_one_version_the_later_counts() -> None:
    assert fold(None, [(Action.PUT, [Column("a", 1, 5)]), (Action.UPDATE, [Column("a", 2, 5)])]) == {"a": Cell(2, 5)}


def test_a_row_that_loses_its_last_value_stays() -> None:
    drop = Column("a", None, None, CellOp.DELETE_ALL_VERSIONS)
    assert after({"a": Cell(1, 10)}, Action.UPDATE, [drop]) == {}
    assert after(None, Action.UPDATE, [Column("a", 1, 10), drop]) == {}
    assert after(None, Action.PUT, []) == {}


def test_an_update_that_only_deletes_makes_no_row() -> None:
    for drop in (
        Column("a", None, None, CellOp.DELETE_ALL_VERSIONS),
        Column("a", None, 10, CellOp.DELETE_ONE_VERSION),
    ):
        assert after(None, Action.UPDATE, [drop]) is None
        assert after({}, Action.UPDATE, [drop]) == {}


@pytest.mark.parametrize("cell", [Column("a", 1, 5, CellOp.INCREMENT), Column("a", 1, None), Column("a", None, 5)])
def test_a_cell_that_no_stream_has_is_refused(cell: Column) -> None:
    with pytest.raises(CodecError, match="column 'a': found"):
        after(None, Action.UPDATE, [cell])


@given(st.integers(0, 1 << 30), st.integers(1, 80), st.data())
def test_batches_a_snapshot_and_a_replay_end_in_the_rows_of_the_table(
    seed: int, count: int, data: st.DataObject
) -> None:
    """The mirror begins with a row each as it was at some time, and then has every change from a former time on.

    A stretch that it has had comes again behind any change, as after the loss of a checkpoint folder.
    """
    changes = list(Changes(seed, 3, 1_700_000_000_000).make(count))
    table = OneVersionTable()
    begin = data.draw(st.integers(0, count), label="first change of the tunnel")
    keys = sorted({key for key, _, _ in changes})
    read_at = {
        key: data.draw(st.integers(begin, count), label="changes before the snapshot reads the row") for key in keys
    }
    mirror: dict[PrimaryKey, Row] = {}
    for place in range(count + 1):
        for key in keys:
            if read_at[key] == place:
                # a snapshot has a put of what is there
                mirror[key] = _stored(table.row(key))
        if place < count:
            table.write(*changes[place])

    again = data.draw(st.integers(begin, count), label="replayed from")
    until = data.draw(st.integers(again, count), label="replayed behind")
    stream = [*changes[begin:until], *changes[again:]]
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream))), label="ends of batches") | {0, len(stream)})
    for start, end in itertools.pairwise(cuts):
        batch: dict[PrimaryKey, list[Change]] = {}
        for key, action, cells in stream[start:end]:
            batch.setdefault(key, []).append((action, cells))
        for key, found in batch.items():
            mirror[key] = fold(_stored(mirror[key]), found)

    assert mirror == {key: table.row(key) for key in keys}


def _stored(row: Row) -> Row:
    """The row as a put of its cells, which is what a batch begins with."""
    if row is None:
        return None
    return after(None, Action.PUT, [Column(name, cell.value, cell.version) for name, cell in row.items()])
