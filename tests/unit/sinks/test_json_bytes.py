"""The JSON form as bytes: those of the reference, whatever the record, and read back by two parsers."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import pyarrow.json
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action, CellOp, ChannelId, Marker, SequenceInfo
from ots_tunnel.protocol.plainbuffer.building import join_row
from ots_tunnel.protocol.plainbuffer.codec import DecodedRow, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.plainbuffer.crc8 import crc8
from ots_tunnel.protocol.plainbuffer.spans import scan_row
from ots_tunnel.protocol.plainbuffer.tags import STRING
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import json_bytes as module
from ots_tunnel.sinks.json_bytes import json_bytes, json_lines
from ots_tunnel.sinks.json_record import json_form, json_text
from tests.support.row_strategies import damaged, encode, rows

CHANNEL = ChannelId('channel "1"\n')
KEY = (("id", 7),)


def reference(record: Record) -> bytes | None:
    """What `json_record` says; None where it refuses the record."""
    try:
        return json_text(json_form(record, CHANNEL)).encode()
    except CodecError:
        return None


def put(*cells: Column) -> Record:
    return Record(Action.PUT, encode_row(KEY, cells, sequence=SequenceInfo(1, 2, 3)))


def check(record: Record) -> None:
    """Compare with the reference, which may refuse the record."""
    expected = reference(record)
    if expected is None:
        with pytest.raises(CodecError):
            json_bytes(record, CHANNEL)
    else:
        assert json_bytes(record, CHANNEL) == expected


@given(rows, st.sampled_from(Action))
def test_a_record_has_the_bytes_of_the_reference(row: DecodedRow, action: Action) -> None:
    check(Record(action, encode(row)))


@given(damaged())
def test_what_the_reference_refuses_is_refused(body: bytes) -> None:
    check(Record(Action.UPDATE, body))


@given(st.lists(rows, max_size=8), st.integers(0, 2_000))
def test_lines_are_those_of_their_records(some: list[DecodedRow], size: int) -> None:
    records = [Record(Action.PUT, encode(row)) for row in some]
    records = [record for record in records if reference(record) is not None]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PORTION_BYTES", size)
        portions = list(json_lines(records, CHANNEL))

    assert b"".join(portions) == b"".join((reference(record) or b"") + b"\n" for record in records)
    assert all(portion.endswith(b"\n") for portion in portions)


def test_a_malformed_record_ends_the_lines_behind_those_before_it() -> None:
    record = put()
    portions: list[bytes] = []

    with pytest.raises(CodecError):
        portions.extend(json_lines([record, Record(Action.PUT, b"u\0\0\0"), record], CHANNEL))

    # the reference joins lines to a portion before it gives any
    assert b"".join(portions) == (b"" if native is None else (reference(record) or b"") + b"\n")


VALUES: list[Any] = [
    *(0, -1, 2**63 - 1, -(2**63), 10**18),
    *(0.0, -0.0, 0.1, 1e16, 1e-7, 5e-324, 1.7976931348623157e308, 123456789.0),
    *(
        True,
        False,
        "",
        '"\\/',
        "\b\f\n\r\t\0\x1f\x7f",
        "ü€\U0001f600\u2028",
        "seven b",
        'seven b"',
        "seven b\\",
        "seven b\x1f",
        "seven bü",
        "eight by",
        "eight by\n",
        "a" * 7 + '"',
    ),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_is_read_back_by_two_parsers(value: Any) -> None:
    text = json_bytes(put(Column("v", value)), CHANNEL)

    assert text == reference(put(Column("v", value)))
    (found,) = json.loads(text)["columns"]
    assert (type(found["value"]), found["value"]) == (type(value), value)
    line = io.BytesIO(b'{"v":' + text.split(b'"value":')[1].removesuffix(b"}]}") + b"}\n")
    (other,) = pyarrow.json.read_json(line)["v"].to_pylist()
    assert (type(other), other) == (type(value), value)
    if isinstance(value, float):
        assert math.copysign(1, other) == math.copysign(1, found["value"]) == math.copysign(1, value)


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, b"", b"a", b"ab", b"abc", bytes(range(256))], ids=repr
)
def test_a_value_without_a_json_form_is_an_object(value: Any) -> None:
    record = put(Column("v", value, 5), Column("w", None, None, CellOp.DELETE_ALL_VERSIONS))

    assert json_bytes(record, CHANNEL) == reference(record)


@pytest.mark.parametrize(
    "key",
    [(("a", Marker.INF_MIN),), (("a", 1), ("a", 2)), (("a", 1), ("b", "x"), ("c", b"\0"), ("d", -1)), ()],
    ids=["marker", "twice", "four", "none"],
)
def test_keys_that_are_rare(key: tuple[tuple[str, Any], ...]) -> None:
    record = Record(Action.DELETE, encode_row(key, delete=True))

    assert json_bytes(record, CHANNEL) == reference(record)


@pytest.mark.usefixtures("compiled_codec")
def test_a_key_of_more_cells_than_a_table_has_is_left_to_the_reference() -> None:
    """Each cell is compared with all before it: for a damaged page of 4 MiB that would take a minute."""
    assert native is not None
    few, many = (
        Record(Action.DELETE, encode_row(tuple((f"k{number}", number) for number in range(count)), delete=True))
        for count in (64, 65)
    )

    assert native.json_record(few, {Action.DELETE: b"{"}) is not None
    assert native.json_record(many, {Action.DELETE: b"{"}) is None
    assert json_bytes(few, CHANNEL) == reference(few)
    assert json_bytes(many, CHANNEL) == reference(many)


#: Bytes that are no text: overlong forms, surrogates, beyond the last character, cut off, a continuation alone.
NO_TEXTS = (
    *(b"\xc0\x80", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80"),
    *(b"\xf8", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\x80"),
)


@pytest.mark.parametrize("raw", NO_TEXTS, ids=bytes.hex)
@pytest.mark.usefixtures("compiled_codec")
def test_what_is_no_text_is_left_to_the_reference(raw: bytes) -> None:
    assert native is not None
    span = scan_row(encode_row(KEY, [Column("v", raw)]))
    (cell,) = span.cells
    assert cell.value is not None
    value = bytes((STRING,)) + cell.value[1:]
    checksum = crc8(cell.name + value)
    cells = [(cell.raw.replace(cell.value, value)[:-1] + bytes((checksum,)), checksum)]
    record = Record(Action.PUT, join_row(span.key, span.key_checksums, cells))

    assert native.json_record(record, {Action.PUT: b""}) is None
    with pytest.raises(CodecError, match="UTF-8"):
        json_bytes(record, CHANNEL)
