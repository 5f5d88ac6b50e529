"""The wire: dates, signatures, rows, answers, errors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action, CellOp, Credentials, SequenceInfo
from ots_tunnel.protocol import tunnel_pb2 as pb
from ots_tunnel.protocol.http.message import HttpResponse
from ots_tunnel.protocol.http.operations import TUNNEL_OPERATIONS
from ots_tunnel.protocol.http.rpc import build_request, parse_response
from ots_tunnel.protocol.http.signing import sign_v2, string_to_sign
from ots_tunnel.protocol.page import read_page, read_page_in_python
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import PythonRecord, Record

CODECS = pytest.mark.parametrize("codec", [Record, PythonRecord], ids=["chosen", "reference"])
KEY = (("pk", "k1"), ("no", 7))
BIG = SequenceInfo(3, 1_700_000_000_000_000, 2)


@pytest.mark.parametrize(
    ("seconds", "date"),
    [
        (1_736_046_245.0, "2025-01-05T03:04:05.000Z"),
        (1_767_218_645.007, "2025-12-31T22:04:05.007Z"),
        (1_759_968_000.999, "2025-10-09T00:00:00.999Z"),
    ],
)
def test_g02_the_dates_fraction_is_milliseconds(seconds: float, date: str) -> None:
    """Go writes month, day and hour where milliseconds belong; ours are three digits of the time itself."""
    operation = TUNNEL_OPERATIONS["ListTunnel"]
    request = build_request(
        operation, pb.ListTunnelRequest(), instance="i", credentials=Credentials("a", "b"), now=seconds, trace_id="t"
    )

    assert request.headers["x-ots-date"] == date


@CODECS
def test_g03_the_epoch_of_a_position_is_kept_and_orders_first(codec: type[Record]) -> None:
    """Go drops the epoch of a record's position; ours keeps it, and compares it before time and row index."""
    earlier = codec(
        Action.PUT, encode_row(KEY, (Column("n", 1, 1),), sequence=SequenceInfo(2, BIG.timestamp_us + 9, 5))
    )
    later = codec(Action.PUT, encode_row(KEY, (Column("n", 1, 1),), sequence=BIG))

    assert later.sequence == BIG
    assert earlier.sequence is not None
    assert earlier.sequence < BIG


@CODECS
def test_g04_a_cells_version_is_a_copy_and_none_where_there_is_none(codec: type[Record]) -> None:
    """Go returns pointers into its decoder, and 0 for a column without a version; ours are values, or None."""
    first = codec(
        Action.UPDATE,
        encode_row(KEY, (Column("a", 1, 0), Column("b", None, None, CellOp.DELETE_ALL_VERSIONS))),
    )
    columns = first.columns
    second = codec(
        Action.UPDATE, encode_row(KEY, (Column("a", 2, 99), Column("b", None, 98, CellOp.DELETE_ONE_VERSION)))
    )

    assert [column.timestamp_ms for column in second.columns] == [99, 98]
    assert [(column.value, column.timestamp_ms, column.op) for column in columns] == [
        (1, 0, CellOp.PUT),
        (None, None, CellOp.DELETE_ALL_VERSIONS),
    ]


@pytest.mark.parametrize("read", [read_page, read_page_in_python], ids=["chosen", "reference"])
@pytest.mark.parametrize("body", [b"", b"\x0a\x00", b"<html>maintenance</html>", b"\xff"])
def test_g20_a_page_without_its_fields_is_an_error(read: object, body: bytes) -> None:
    """Go's process ends on an empty answer to a read; ours names the missing field."""
    with pytest.raises(CodecError):
        read(body)


@pytest.mark.parametrize("name", TUNNEL_OPERATIONS)
def test_g20_an_empty_answer_is_an_empty_message_or_an_error(name: str) -> None:
    """Go's process ends on an empty answer to many calls; ours names the missing field."""
    operation = TUNNEL_OPERATIONS[name]
    required = operation.response_type().FindInitializationErrors()

    if required:
        with pytest.raises(CodecError, match=f"lacks {required[0]}"):
            parse_response(operation, HttpResponse(200, {}, b""))
    else:
        assert parse_response(operation, HttpResponse(200, {}, b"")) == operation.response_type()


@CODECS
@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
@pytest.mark.parametrize("look", ["primary_key", "columns"])
def test_g21_a_damaged_row_is_always_an_error(codec: type[Record], flip: int, look: str) -> None:
    """Go ignores checksums and errors of a damaged row; ours detects every damaged byte of a row."""
    body = encode_row(KEY, (Column("n", 12, 1), Column("s", "text", 2)))
    intact = codec(Action.PUT, body)
    assert (intact.primary_key, len(intact.columns)) == (KEY, 2)

    for damaged in damages(body, flip):
        with pytest.raises(CodecError):
            getattr(codec(Action.PUT, damaged), look)


@CODECS
@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
@pytest.mark.parametrize("name", ["n", "s", "absent"])
def test_g21_a_column_of_a_damaged_row_is_right_or_an_error(codec: type[Record], flip: int, name: str) -> None:
    """A single column is decoded without the others; it is never a wrong one, nor missing."""
    body = encode_row(KEY, (Column("n", 12, 1), Column("s", "text", 2)))
    written = codec(Action.PUT, body).column(name)

    for damaged in damages(body, flip):
        try:
            assert codec(Action.PUT, damaged).column(name) == written
        except CodecError:
            continue


def damages(body: bytes, flip: int) -> Iterator[bytes]:
    """The row with each of its bytes damaged."""
    for position in range(len(body)):
        yield body[:position] + bytes([body[position] ^ flip]) + body[position + 1 :]


def test_g22_a_header_it_does_not_know_is_signed_like_any_other() -> None:
    """Go's table of signed headers fails with an unknown header; ours signs every header of the request."""
    known = {"x-ots-date": "d", "x-ots-instancename": "i"}
    text = string_to_sign("/tunnel/list", known)

    assert string_to_sign("/tunnel/list", {**known, "X-Ots-External": " e "}) == text.replace(
        "x-ots-instancename", "x-ots-external:e\nx-ots-instancename"
    )
    assert sign_v2("/tunnel/list", {**known, "x-ots-external": "e"}, "s") != sign_v2("/tunnel/list", known, "s")
    assert string_to_sign("/tunnel/list", known) == text


@pytest.mark.parametrize(
    "third_field",
    [
        b"\x1a\x06tunnel",
        b"\x1a\x00",
        b"\x1a\x02\xff\xfe",
        b"\x1a"
        + bytes([len(pb.Error(code="x", message="y").SerializeToString())])
        + pb.Error(code="x", message="y").SerializeToString(),
    ],
    ids=["tunnel id", "empty", "not UTF-8", "message"],
)
def test_j15_a_third_field_does_not_hide_an_errors_code(third_field: bytes) -> None:
    """Java takes an error with a tunnel id for a network failure; ours looks at its code."""
    body = pb.Error(code="OTSTunnelExpired", message="gone").SerializeToString() + third_field

    with pytest.raises(Exception, match="gone") as raised:
        parse_response(TUNNEL_OPERATIONS["Heartbeat"], HttpResponse(400, {"x-ots-requestid": "r"}, body))

    assert (type(raised.value).__name__, raised.value.code) == ("TunnelExpired", "OTSTunnelExpired")
