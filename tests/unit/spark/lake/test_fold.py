"""The fold of a mirror against a table that keeps one version: batches, snapshots, replays."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action, CellOp, PrimaryKey
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.spark.lake.fold import Cell, Row, after, fold
from tests.support.lake.one_version_changes import Changes

Change = tuple[Action, tuple[Column, ...]]


class OneVersionTable:
    """A table that keeps the newest version of each column; written without `fold`."""

    def __init__(self) -> None:
        self.rows: dict[PrimaryKey, dict[str, dict[int, object]]] = {}

    def write(self, key: PrimaryKey, action: Action, cells: tuple[Column, ...]) -> None:
        if action is not Action.UPDATE:
            self.rows.pop(key, None)
        if action is Action.DELETE:
            return
        columns = self.rows.setdefault(key, {})
        for cell in cells:
            versions = columns.setdefault(cell.name, {})
            if cell.op is CellOp.PUT:
                versions[cell.timestamp_ms or 0] = cell.value
            elif cell.op is CellOp.DELETE_ONE_VERSION:
                versions.pop(cell.timestamp_ms or 0, None)
            else:
                versions.clear()
            for older in sorted(versions)[:-1]:
                del versions[older]

    def row(self, key: PrimaryKey) -> Row:
        columns = self.rows.get(key)
        if columns is None:
            return None
        return {
            name: Cell(value, version)  # type: ignore[arg-type]  # what was put
            for name, versions in columns.items()
            for version, value in versions.items()
        }


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


def test_an_update_makes_a_row_and_one_without_values_is_no_missing_row() -> None:
    assert after(None, Action.UPDATE, [Column("a", None, None, CellOp.DELETE_ALL_VERSIONS)]) == {}
    assert after(None, Action.PUT, []) == {}


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
