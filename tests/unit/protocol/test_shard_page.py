"""Pages of a shard, with whichever codec is in use and with the reference; the twins are compared in tests/stateful."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.record import Record
from ots_tunnel.protocol.shard_page import ShardPageContent, read_shard_page, read_shard_page_in_python
from tests.support.vectors import STREAM_PUT

READERS = pytest.mark.parametrize("read", [read_shard_page, read_shard_page_in_python], ids=["chosen", "reference"])
Read = Callable[[bytes], ShardPageContent]


def wire(action: Action, origin: bytes | None = None) -> pb.GetStreamRecordResponse.StreamRecord:
    """A record of an answer."""
    return pb.GetStreamRecordResponse.StreamRecord(
        action_type=int(action), record=STREAM_PUT.wire, origin_record=origin
    )


@READERS
@pytest.mark.parametrize("may_more", [True, False, None])
def test_records_and_place_come_out_as_they_were_sent(read: Read, may_more: bool | None) -> None:
    used = pb.ConsumedCapacity(capacity_unit=pb.CapacityUnit(read=7, write=0))
    sent = [wire(Action.PUT, b"origin"), wire(Action.DELETE), wire(Action.UPDATE, b"")]
    answer = pb.GetStreamRecordResponse(
        stream_records=sent, next_shard_iterator="j", consumed=used, may_more_record=may_more
    )

    records = [
        Record(Action.PUT, STREAM_PUT.wire, b"origin"),
        Record(Action.DELETE, STREAM_PUT.wire),
        Record(Action.UPDATE, STREAM_PUT.wire),
    ]
    assert read(answer.SerializeToString()) == (records, "j", may_more)


@READERS
def test_an_answer_without_a_next_iterator_is_the_end_of_the_shard(read: Read) -> None:
    assert read(b"") == ([], None, None)
    assert read(pb.GetStreamRecordResponse(next_shard_iterator="").SerializeToString()).next_iterator == ""


@READERS
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>maintenance</html>", "answer of 24 bytes is not a GetStreamRecordResponse"),
        (b"\x0a\x05", "answer of 2 bytes is not a GetStreamRecordResponse"),
        (b"\x0a\x00", "GetStreamRecordResponse lacks stream_records"),
        (b"\x0a\x04\x08\x04\x12\x00", "GetStreamRecordResponse lacks stream_records"),
        (b"\x1a\x00", "GetStreamRecordResponse lacks consumed.capacity_unit"),
        (b"\x12\x01\xff", "GetStreamRecordResponse.next_shard_iterator is not UTF-8"),
    ],
    ids=["no message", "cut", "no record", "unknown action", "no unit", "not UTF-8"],
)
def test_a_malformed_page_is_refused(read: Read, body: bytes, message: str) -> None:
    with pytest.raises(CodecError, match=message):
        read(body)
