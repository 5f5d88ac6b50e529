"""Pages and batches, with whichever codec is in use; the twins are compared in tests/stateful."""

from __future__ import annotations

import pytest

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action
from ots_tunnel.protocol import table_pb2, tunnel_pb2
from ots_tunnel.protocol.page import (
    all_rows_stored,
    count_actions,
    encode_batch_writes,
    encode_page,
    encode_page_in_python,
    reached_log_end,
    read_page,
    total_size,
)
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import PythonRecord, Record
from tests.support.vectors import STREAM_PUT


def page(*records: tunnel_pb2.Record, may_more: bool | None = None) -> bytes:
    message = tunnel_pb2.ReadRecordsResponse(records=records, next_token="next", may_more_record=may_more)
    return message.SerializeToString()


@pytest.mark.parametrize("action", Action)
def test_records_come_out_as_they_were_sent(action: Action) -> None:
    wire = tunnel_pb2.Record(action_type=int(action), record=STREAM_PUT.wire, origin_record=b"origin")

    records, token, may_more = read_page(page(wire, wire))

    assert records == [Record(action, STREAM_PUT.wire, b"origin")] * 2
    assert (token, may_more) == ("next", None)


@pytest.mark.parametrize("bodies", [[], [b""], [b"x" * 127, b"y" * 128], [STREAM_PUT.wire] * 300])
def test_records_become_a_page_again(bodies: list[bytes]) -> None:
    records = [Record(action, body, b"origin") for body in bodies for action in Action]
    expected = [Record(record.action, record.body) for record in records]

    body = encode_page(records)

    assert body == encode_page_in_python(records)
    assert read_page(body) == (expected, "", None)
    # records of a page are views into it
    assert encode_page(read_page(body).records[1:]) == encode_page_in_python(expected[1:])
    assert encode_page([PythonRecord(record.action, record.body) for record in records]) == body


def test_an_empty_origin_is_none() -> None:
    wire = tunnel_pb2.Record(action_type=1, record=b"body", origin_record=b"")

    assert read_page(page(wire)).records[0].origin is None


@pytest.mark.parametrize("may_more", [True, False])
def test_whether_there_may_be_more(may_more: bool) -> None:
    assert read_page(page(may_more=may_more)).may_more is may_more


@pytest.mark.parametrize(
    ("may_more", "rows", "reached"),
    [(True, 0, False), (True, 5, False), (False, 0, True), (False, 5, True), (None, 0, True), (None, 5, False)],
)
def test_a_page_reaches_the_end_of_the_log_when_the_service_says_so_or_sends_nothing(
    may_more: bool | None, rows: int, reached: bool
) -> None:
    assert reached_log_end(may_more, rows) is reached


@pytest.mark.parametrize("is_read_before", [False, True], ids=["first", "again"])
@pytest.mark.parametrize("kind", [Record, PythonRecord], ids=["chosen", "Python"])
def test_columns_are_decoded_without_being_kept(kind: type[PythonRecord], is_read_before: bool) -> None:
    record = kind(Action.PUT, STREAM_PUT.wire)
    kept = record.columns if is_read_before else None

    once, again = record.decode_columns(), record.decode_columns()

    assert once == again == record.columns == tuple(STREAM_PUT.columns)
    assert (once is again) == (kept is not None), "what was kept is used, and nothing else is kept"


@pytest.mark.parametrize("kind", [Record, PythonRecord], ids=["chosen", "Python"])
def test_a_put_without_a_value_is_refused_as_well_where_nothing_is_kept(kind: type[PythonRecord]) -> None:
    body = encode_row(STREAM_PUT.primary_key, [Column("c", None, 5)])

    with pytest.raises(CodecError, match="put without a value"):
        kind(Action.PUT, body).decode_columns()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "lacks next_token"),
        (page()[:-1], "is not a ReadRecordsResponse"),
        (b"\x12\x01\xff", "not UTF-8"),
        (b"\x0a\x00\x12\x01x", "lacks"),
    ],
)
def test_malformed_page_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(CodecError, match=message):
        read_page(body)


def test_batch_repeats_the_rows_without_their_extensions() -> None:
    rows = [Record(Action.PUT, STREAM_PUT.wire), Record(Action.DELETE, STREAM_PUT.wire)]
    (body,) = encode_batch_writes("orders", [rows])

    request = table_pb2.BatchWriteRowRequest.FromString(body.content)
    stripped = encode_row(STREAM_PUT.primary_key, STREAM_PUT.columns)
    assert request.tables[0].table_name == "orders"
    assert [(row.type, row.row_change) for row in request.tables[0].rows] == [
        (table_pb2.PUT, stripped),
        (table_pb2.DELETE, stripped),
    ]
    assert {row.condition.row_existence for row in request.tables[0].rows} == {table_pb2.IGNORE}


def test_batch_with_a_malformed_record_is_refused() -> None:
    with pytest.raises(CodecError):
        encode_batch_writes("orders", [[Record(Action.PUT, STREAM_PUT.wire)], [Record(Action.PUT, b"no row")]])


def test_a_batch_is_stored_only_when_every_row_is() -> None:
    answer = table_pb2.BatchWriteRowResponse()
    rows = answer.tables.add(table_name="orders").rows
    rows.add(is_ok=True)
    rows.add(is_ok=True)
    stored = answer.SerializeToString()
    rows[1].is_ok = False

    assert all_rows_stored(stored, 2)
    assert not all_rows_stored(stored, 3)
    assert not all_rows_stored(answer.SerializeToString(), 2)
    assert not all_rows_stored(b"no message", 2)


@pytest.mark.parametrize("kind", [list, tuple])
def test_actions_and_bytes_of_a_page_are_counted(kind: type) -> None:
    actions = [Action.PUT, Action.DELETE, Action.PUT]
    records = kind(Record(action, b"u" * number, b"o" if number else None) for number, action in enumerate(actions))

    assert dict(count_actions(records)) == {Action.PUT: 2, Action.DELETE: 1}
    assert total_size(records) == sum(record.size for record in records) == 5
    assert dict(count_actions(kind())) == {}
    assert total_size(kind()) == 0


def test_records_that_are_not_compiled_are_counted_as_well() -> None:
    records = [Record(Action.UPDATE, b"12"), PythonRecord(Action.UPDATE, b"345")]

    assert dict(count_actions(records)) == {Action.UPDATE: 2}
    assert total_size(records) == 5
