"""The steps of a row write: each returns a new value or raises its refusal."""

from __future__ import annotations

import pytest

from ots_emulator.api.rows.patterns import Work
from ots_emulator.api.rows.row_write import RowWrite, read_write, with_key
from ots_emulator.refusal import Refusal, RequestRefusal
from ots_emulator.tables.keys import KeySchema
from ots_emulator.tables.options import TableOptions
from ots_emulator.tables.table import Table
from ots_tunnel.model import Action, KeyColumn, KeyType, KeyValue, Marker
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import decode_row, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column

NOW_US = 1_700_000_000_000_000
COLUMNS = (KeyColumn("k", KeyType.INTEGER), KeyColumn("s", KeyType.INTEGER, auto_increment=True))


def table_of(*columns: KeyColumn) -> Table:
    return Table("t", KeySchema(columns), TableOptions(), now_us=NOW_US)


def put_of(*key: tuple[str, KeyValue], name: str = "v", existence: str = "IGNORE") -> RowWrite:
    row = encode_row(key, [Column(name, 1)])
    request = pb.PutRowRequest(table_name="t", row=row, condition=pb.Condition(row_existence=existence))
    return read_write(Action.PUT, row, request, Work())


def test_a_row_gets_the_key_of_its_table() -> None:
    write = put_of(("k", 7))

    keyed = with_key(write, table_of(COLUMNS[0]), NOW_US)

    assert keyed.key == (7,)
    assert keyed.write is write


def test_a_placeholder_is_filled_in_a_new_row() -> None:
    write = put_of(("k", 7), ("s", Marker.AUTO_INCREMENT))
    sent = write.row

    keyed = with_key(write, table_of(*COLUMNS), NOW_US + 999)

    assert write.row == sent
    assert keyed.key == (7, NOW_US)
    row = decode_row(keyed.write.row)
    assert row.primary_key == (("k", 7), ("s", NOW_US))
    assert [(column.name, column.value) for column in row.columns] == [("v", 1)]


def test_values_of_one_millisecond_differ() -> None:
    table = table_of(*COLUMNS)
    write = put_of(("k", 7), ("s", Marker.AUTO_INCREMENT))

    keys = [with_key(write, table, NOW_US + microseconds).key for microseconds in (1, 2, 1000)]

    assert keys == [(7, NOW_US), (7, NOW_US + 1), (7, NOW_US + 1000)]


def test_an_explicit_value_of_an_auto_increment_column_stays() -> None:
    write = put_of(("k", 7), ("s", 5))

    keyed = with_key(write, table_of(*COLUMNS), NOW_US)

    assert keyed.key == (7, 5)
    assert keyed.write is write


def test_a_key_that_does_not_fit_refuses_its_row_only() -> None:
    with pytest.raises(Refusal) as caught:
        with_key(put_of(("other", 7)), table_of(COLUMNS[0]), NOW_US)

    assert caught.value.code == "OTSInvalidPK"
    assert not isinstance(caught.value, RequestRefusal)


def test_a_condition_contradicts_a_placeholder() -> None:
    write = put_of(("k", 7), ("s", Marker.AUTO_INCREMENT), existence="EXPECT_EXIST")

    with pytest.raises(Refusal, match="Invalid expect:EXPECT_EXIST when modify row with pk auto increment"):
        with_key(write, table_of(*COLUMNS), NOW_US)


def test_a_column_named_like_a_key_column_refuses_the_request() -> None:
    with pytest.raises(RequestRefusal, match="Duplicated attribute column name"):
        with_key(put_of(("k", 7), name="k"), table_of(COLUMNS[0]), NOW_US)
