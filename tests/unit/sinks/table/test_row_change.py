"""Records as row changes: bytes pass through, with the exceptions of docs/architecture.md rule 13."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.model import Action, CellOp, SequenceInfo
from ots_tunnel.protocol.plainbuffer.codec import decode_row, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.grouping import Limits
from ots_tunnel.sinks.table.row_change import Omissions, changes_of, unaltered_change
from tests.support.records import record

KEY = (("pk", "a"), ("n", 7))
SEQUENCE = SequenceInfo(1, 1_700_000_000_000_000, 3)
LIMITS = Limits()


def record_of(action: Action, *columns: Column) -> Record:
    return record(KEY, *columns, action=action, sequence=SEQUENCE)


@pytest.mark.parametrize(
    ("action", "columns"),
    [
        (Action.PUT, ()),
        (Action.PUT, (Column("a", 1, 5), Column("b", "x", 5))),
        (Action.UPDATE, (Column("a", 1.5, 5), Column("b", None, 3, CellOp.DELETE_ONE_VERSION))),
        (Action.UPDATE, (Column("a", None, None, CellOp.DELETE_ALL_VERSIONS),)),
        (Action.DELETE, ()),
    ],
)
def test_bytes_pass_through_without_the_extension(action: Action, columns: tuple[Column, ...]) -> None:
    omissions = Omissions()
    [change] = changes_of(record_of(action, *columns), LIMITS, omissions, None)

    assert change.row.action is action
    assert change.row.body == encode_row(KEY, columns, delete=action is Action.DELETE)
    assert change.key == record_of(action, *columns).key
    assert change.size >= len(change.row.body)
    assert omissions == Omissions()


def test_an_update_without_cells_is_left_out_and_counted() -> None:
    omissions = Omissions()

    assert list(changes_of(record_of(Action.UPDATE), LIMITS, omissions, None)) == []
    assert omissions.empty_updates == 1


@pytest.mark.parametrize("action", [Action.PUT, Action.UPDATE])
def test_too_many_cells_become_a_put_and_updates(action: Action) -> None:
    columns = tuple(Column(f"c{number:05}", number, 5) for number in range(2500))
    pieces = list(changes_of(record_of(action, *columns), LIMITS, Omissions(), None))

    assert [piece.row.action for piece in pieces] == [action, Action.UPDATE, Action.UPDATE]
    decoded = [decode_row(piece.row.body).columns for piece in pieces]
    assert [len(part) for part in decoded] == [1024, 1024, 452]
    assert sum(decoded, ()) == columns
    assert {piece.key for piece in pieces} == {pieces[0].key}


def test_beside_another_writer_only_a_put_of_a_whole_row_is_a_put() -> None:
    old, new = Column("a", 1, 999), Column("b", 2, 1000)
    many = tuple(Column(f"c{number}", number, 1000) for number in range(8))

    def actions(*columns: Column, expired_before_ms: int | None = None) -> list[Action]:
        limits = Limits(200, 4_000_000, 7)
        changes = changes_of(record_of(Action.PUT, *columns), limits, Omissions(), expired_before_ms, may_overlap=True)
        return [change.row.action for change in changes]

    assert actions(*many[:7]) == actions(*many[:7], expired_before_ms=1000) == [Action.PUT]
    assert actions(*many) == [Action.UPDATE, Action.UPDATE]
    assert actions(old, new, expired_before_ms=1000) == [Action.UPDATE]
    # a row whose cells have all expired disappears; one that never had a cell is there
    assert actions(old, expired_before_ms=1000) == []
    assert actions() == actions(expired_before_ms=1000) == [Action.PUT]


@settings(deadline=None)
@given(sizes=st.lists(st.integers(1, 900), min_size=1, max_size=30), max_bytes=st.integers(1100, 3000))
def test_pieces_fit_a_request_and_hold_every_cell_in_order(sizes: list[int], max_bytes: int) -> None:
    columns = tuple(Column(f"c{number}", "x" * size, 5) for number, size in enumerate(sizes))
    pieces = list(changes_of(record_of(Action.PUT, *columns), Limits(200, max_bytes, 7), Omissions(), None))

    assert all(piece.size <= max_bytes for piece in pieces)
    assert sum((decode_row(piece.row.body).columns for piece in pieces), ()) == columns
    assert [piece.row.action for piece in pieces] == [Action.PUT] + [Action.UPDATE] * (len(pieces) - 1)


def test_cells_past_the_lifetime_are_left_out_and_counted() -> None:
    omissions = Omissions()
    old, new = Column("old", 1, 999), Column("new", 2, 1000)
    deletion = Column("old", None, 5, CellOp.DELETE_ONE_VERSION)

    [put] = changes_of(record_of(Action.PUT, old, new), LIMITS, omissions, 1000)
    [update] = changes_of(record_of(Action.UPDATE, old, deletion), LIMITS, omissions, 1000)
    [emptied] = changes_of(record_of(Action.PUT, old), LIMITS, omissions, 1000)
    nothing = list(changes_of(record_of(Action.UPDATE, old), LIMITS, omissions, 1000))

    assert decode_row(put.row.body).columns == (new,)
    assert decode_row(update.row.body).columns == (deletion,)
    # put without cells, it would stay for ever
    assert emptied.row == RowChange(Action.DELETE, encode_row(KEY, (), delete=True))
    assert nothing == []
    assert omissions == Omissions(empty_updates=1, expired_cells=4)


def test_base_records_without_extension_pass_too() -> None:
    body = encode_row(KEY, (Column("a", 1, 5),))
    [change] = changes_of(Record(Action.PUT, body), LIMITS, Omissions(), None)

    assert change.row.body == body
    assert change == unaltered_change(Record(Action.PUT, body))
