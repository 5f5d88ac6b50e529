from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from pydantic import ValidationError

from ots_tunnel.config import DeliveryConfig
from ots_tunnel.errors import SinkRejected
from ots_tunnel.model import Action, CellOp, SequenceInfo
from ots_tunnel.protocol.plainbuffer.codec import DecodedRow, decode_row, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.middleware.transform import Omitted, Transform
from tests.support.records import record
from tests.support.row_strategies import encode, rows

KEY = (("shop", "hangzhou-1"), ("id", 7))
CELLS = (Column("price", 3.5, 10), Column("note", "x", 20), Column("old", None, 5, CellOp.DELETE_ONE_VERSION))


def change(action: Action = Action.PUT, cells: tuple[Column, ...] = CELLS) -> Record:
    return record(KEY, *cells, action=action, sequence=SequenceInfo(0, 99, 1))


def transform(**delivery: Any) -> Transform | None:
    return Transform.of(DeliveryConfig.model_validate(delivery))


def columns_after(action: Action, **delivery: Any) -> tuple[list[Column] | None, Omitted]:
    made, omitted = transform(**delivery), Omitted()
    assert made is not None
    passed = made.apply([change(action)], omitted)
    return (list(passed[0].columns) if passed else None), omitted


def test_without_settings_there_is_no_transform() -> None:
    assert transform() is None


@pytest.mark.parametrize("action", [Action.PUT, Action.UPDATE])
def test_columns_are_left_out(action: Action) -> None:
    assert columns_after(action, columns={"exclude": ["note"]}) == ([CELLS[0], CELLS[2]], Omitted(cells=1))
    assert columns_after(action, columns={"include": ["note"]}) == ([CELLS[1]], Omitted(cells=2))


def test_columns_get_other_names_and_keep_everything_else() -> None:
    columns, omitted = columns_after(Action.UPDATE, columns={"rename": {"price": "preis", "old": "alt"}})

    assert columns == [
        Column("preis", 3.5, 10),
        Column("note", "x", 20),
        Column("alt", None, 5, CellOp.DELETE_ONE_VERSION),
    ]
    assert omitted == Omitted()


@pytest.mark.parametrize("action", [Action.UPDATE, Action.DELETE])
def test_previous_values_are_of_the_columns_that_pass(action: Action) -> None:
    made = transform(columns={"exclude": ["note"], "rename": {"price": "preis"}})
    assert made is not None
    origin = encode_row(KEY, (Column("price", 1.5, 1), Column("note", "secret", 1)))
    found = Record(action, encode_row(KEY, (Column("price", 3.5, 2),), delete=action is Action.DELETE), origin)

    (passed,) = made.apply([found], Omitted())

    assert passed.origin_columns == (Column("preis", 1.5, 1),)


def test_a_put_of_which_no_cell_is_left_still_replaces_the_row() -> None:
    assert columns_after(Action.PUT, columns={"include": ["absent"]}) == ([], Omitted(cells=3))


def test_an_update_of_which_no_cell_is_left_is_left_out() -> None:
    assert columns_after(Action.UPDATE, columns={"include": ["absent"]}) == (None, Omitted(records=1, cells=3))


def test_deletes_pass() -> None:
    assert columns_after(Action.DELETE, columns={"include": ["absent"]}) == ([], Omitted())


@pytest.mark.parametrize("action", Action)
def test_actions_are_chosen(action: Action) -> None:
    columns, omitted = columns_after(action, filter={"actions": ["PUT", "DELETE"]})

    assert (columns is None) == (action is Action.UPDATE) == (omitted.records == 1)


@pytest.mark.parametrize(
    ("prefix", "passes"),
    [
        ({"shop": "hangzhou-"}, True),
        ({"shop": "beijing"}, False),
        ({"shop": ""}, True),
    ],
)
def test_keys_are_chosen_by_their_beginning(prefix: dict[str, str], passes: bool) -> None:
    assert (columns_after(Action.PUT, filter={"keyPrefix": prefix})[0] is not None) == passes


@pytest.mark.parametrize(
    ("prefix", "words"),
    [
        ({"absent": ""}, "delivery.filter.keyPrefix: found 'absent', allowed are the key's columns shop, id"),
        ({"shop": "x", "absent": ""}, "found 'absent'"),
        ({"id": "7"}, "delivery.filter.keyPrefix: key column 'id' is of type INTEGER, allowed is STRING"),
    ],
)
def test_a_prefix_that_no_record_of_the_table_can_have_is_refused(prefix: dict[str, str], words: str) -> None:
    with pytest.raises(SinkRejected, match=words):
        columns_after(Action.DELETE, filter={"keyPrefix": prefix})


@pytest.mark.parametrize("action", [Action.PUT, Action.UPDATE])
@pytest.mark.parametrize("renamed", ["price", "absent"])
def test_two_columns_do_not_become_one(action: Action, renamed: str) -> None:
    # an update may touch one of the two alone, and a row of today may have the other one tomorrow
    with pytest.raises(SinkRejected, match=f"a record has 'note', which is what '{renamed}' becomes: exclude"):
        columns_after(action, columns={"rename": {renamed: "note"}})
    with pytest.raises(SinkRejected, match="a record has 'old'"):
        columns_after(action, columns={"rename": {renamed: "old"}})


def test_columns_swap_their_names_or_follow_an_excluded_one() -> None:
    swapped, _ = columns_after(Action.PUT, columns={"rename": {"price": "note", "note": "price"}})
    moved, _ = columns_after(Action.PUT, columns={"include": ["price"], "rename": {"price": "note"}})
    replaced, _ = columns_after(Action.PUT, columns={"exclude": ["note"], "rename": {"price": "note"}})
    assert [column.name for column in swapped or ()] == ["note", "price", "old"]
    assert moved == [Column("note", 3.5, 10)]
    assert replaced == [Column("note", 3.5, 10), CELLS[2]]


def test_an_untouched_record_is_the_same_object() -> None:
    made = transform(columns={"exclude": ["absent"]})
    assert made is not None
    before = change()

    assert made.apply([before], Omitted())[0] is before


@given(rows)
def test_renaming_there_and_back_gives_the_same_bytes(row: DecodedRow) -> None:
    wire = encode(row)
    names = {column.name.encode() for column in row.columns}
    there = Transform(rename={name: b"~" + name for name in names})
    back = Transform(rename={b"~" + name: name for name in names})

    moved = there.apply([Record(Action.PUT, wire)], Omitted())[0]
    assert back.apply([moved], Omitted())[0].body == wire
    decoded = decode_row(moved.body)
    assert [column.name for column in decoded.columns] == ["~" + column.name for column in row.columns]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"columns": {"include": ["a"], "exclude": ["b"]}}, "exclude: found with include"),
        ({"columns": {"rename": {"a": "c", "b": "c"}}}, "2 columns are called 'c'"),
        ({"columns": {"include": ["a"], "rename": {"b": "c"}}}, "b: left out"),
        ({"columns": {"exclude": ["b"], "rename": {"b": "c"}}}, "b: left out"),
        ({"filter": {"actions": ["MERGE"]}}, "'PUT', 'UPDATE' or 'DELETE'"),
    ],
)
def test_contradictions_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        DeliveryConfig.model_validate(wrong)
