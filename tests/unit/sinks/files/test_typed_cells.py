"""What the columns of a typed row tell, and what is left over: together they do what the record did."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from hypothesis import example, given
from hypothesis import strategies as st

from ots_tunnel.model import CellOp
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.sinks.files.rows.typed_cells import told, versions_of

#: A version that the service chooses is newer than every other one.
NOW = 2**64
ALL, ONE, INCREMENT = CellOp.DELETE_ALL_VERSIONS, CellOp.DELETE_ONE_VERSION, CellOp.INCREMENT

Row = dict[str, dict[int, object]]

versions = st.sampled_from([None, 1, 2, 3])
cells = st.builds(
    Column, st.sampled_from("ab"), st.integers(0, 9), versions, st.sampled_from([CellOp.PUT, INCREMENT])
) | st.builds(Column, st.sampled_from("ab"), st.none() | st.just(7), versions, st.sampled_from([ALL, ONE]))


def apply(row: Row, changes: Iterable[Column]) -> None:
    """Carry out the cells of a record one after the other."""
    for cell in changes:
        of_column = row.setdefault(cell.name, {})
        version = NOW if cell.timestamp_ms is None else cell.timestamp_ms
        if cell.op is CellOp.PUT:
            of_column[version] = cell.value
        elif cell.op is ALL:
            of_column.clear()
        elif cell.op is ONE:
            of_column.pop(version, None)
        else:
            newest = of_column[max(of_column)] if of_column else 0
            of_column[NOW] = (newest, cell.value)


@given(st.lists(cells, max_size=8))
@example([Column("a", 1, 1), Column("a", None, None, ALL)])
@example([Column("a", 1, 1), Column("a", None, 1, ONE)])
@example([Column("a", None, 1, ONE), Column("a", 1, 1)])
@example([Column("a", 5, None, INCREMENT), Column("a", None, None, ALL), Column("a", 1, 1)])
@example([Column("a", 1, 2), Column("a", 2, 2)])
def test_deleted_then_what_is_left_over_then_the_values_do_what_the_record_did(changes: list[Column]) -> None:
    row: Row = {"a": {1: "old", 2: "old"}, "b": {3: "old"}}
    typed = copy.deepcopy(row)
    apply(row, changes)

    found = told(changes)
    apply(typed, (Column(name, None, None, ALL) for name in found.deleted))
    apply(typed, found.rest)
    apply(typed, found.values.values())

    assert typed == row


@given(st.lists(cells, max_size=8))
def test_every_cell_is_told_once(changes: list[Column]) -> None:
    found = told(changes)
    deletions = [Column(name, None, None, ALL) for name in found.deleted]

    assert sorted(map(repr, (*found.values.values(), *deletions, *found.rest))) == sorted(map(repr, changes))


def test_the_latest_version_is_the_value() -> None:
    put = [Column("a", "old", 7), Column("a", "new", 9), Column("a", "older", 8)]
    found = told([*put, Column("b", None, None, ALL), Column("a", "x", 1)])

    assert found.values == {"a": put[1]}
    assert found.rest == [put[0], put[2], Column("a", "x", 1)]
    assert found.deleted == ["b"]


def test_a_value_behind_the_deletion_of_its_column_is_told_with_it() -> None:
    found = told([Column("a", None, None, ALL), Column("a", 1, 5)])

    assert (found.deleted, found.values, found.rest) == (["a"], {"a": Column("a", 1, 5)}, [])


def test_a_column_that_is_put_and_then_deleted_is_left_over_as_a_whole() -> None:
    changes = [Column("a", 1, 5), Column("a", None, None, ALL)]
    found = told(changes)

    assert (found.deleted, found.values, found.rest) == ([], {}, changes)


def test_one_version_stands_for_all_values_and_the_others_are_named() -> None:
    found = told([Column("a", 1, 5), Column("b", 2, 6), Column("c", 3, 5), Column("d", 4, None)])

    assert versions_of(found.values) == (5, [("b", 6), ("d", None)])
    assert versions_of({}) == (None, [])
