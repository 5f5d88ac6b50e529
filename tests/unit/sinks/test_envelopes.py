"""CloudEvents and messages of Kafka: the twin's bytes are those of the reference, whatever the record."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ots_tunnel.config import ColumnsConfig
from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action, ChannelId, ChannelType, Marker, SequenceInfo
from ots_tunnel.protocol.plainbuffer.codec import DecodedRow, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import cloud_events, json_bytes
from ots_tunnel.sinks.cloud_events import Events, event_of, producer_of
from ots_tunnel.sinks.kafka import message
from ots_tunnel.sinks.kafka.message import Message, Messages, Origin
from ots_tunnel.sinks.slices import SLICE_RECORDS
from tests.support.row_strategies import damaged, encode, rows

CHANNEL = ChannelId('channel "1"\n')
SOURCE = 'ots://shop/"orders"'
PRODUCER = 't"1"'
EVENTS = Events(CHANNEL, SOURCE, PRODUCER)
MESSAGES = Messages(Origin("shop", "orders", "t"), CHANNEL, ChannelType.BASE)
#: Microseconds until which the twin writes times; behind it, the reference has to round.
LATEST_US = (1 << 32) * 1_000_000


def expected_event(record: Record) -> bytes | None:
    """What the reference makes without any compiled part; None where it refuses the record."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_bytes, "native", None)
        try:
            return event_of(record, CHANNEL, SOURCE, PRODUCER)
        except (CodecError, OverflowError, ValueError):
            return None


def expected_message(record: Record) -> Message | None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_bytes, "native", None)
        try:
            return MESSAGES.message_of(record)
        except CodecError:
            return None


def check(record: Record) -> None:
    """Compare with the references, which may refuse the record."""
    body = expected_event(record)
    if body is None:
        with pytest.raises((CodecError, OverflowError, ValueError)):
            EVENTS.of([record], 0)
    else:
        (event,) = EVENTS.of([record], 0)
        assert (event.body, event.key, event.size, event.record) == (body, record.key, len(body) + 1, record)
    found = expected_message(record)
    if found is None:
        with pytest.raises(CodecError):
            list(MESSAGES.of([record]))
    else:
        assert list(MESSAGES.of([record])) == [[found]]


@given(rows, st.sampled_from(Action))
def test_a_record_has_the_bytes_of_the_reference(row: DecodedRow, action: Action) -> None:
    check(Record(action, encode(row)))


@given(damaged())
def test_what_the_reference_refuses_is_refused(body: bytes) -> None:
    check(Record(Action.UPDATE, body))


def at(timestamp_us: int, number: int = 0) -> Record:
    sequence = SequenceInfo(-1, timestamp_us, number)
    return Record(Action.PUT, encode_row((("id", number),), [Column("v", number, 5)], sequence=sequence))


@given(st.integers(0, LATEST_US - 1) | st.integers(0, 1 << 20).map(lambda day: day * 3_600_000_000))
@example(0)
@example(951_782_400_000_000)  # 29th February 2000
@example(4_107_542_399_999_999)  # the last one of February 2100, which has 28 days
@example(1_709_251_199_999_999)  # the last one of 29th February 2024
@example(LATEST_US - 1)
def test_a_time_has_its_microseconds(timestamp_us: int) -> None:
    (event,) = EVENTS.of([at(timestamp_us)], 0)
    seconds, microsecond = divmod(timestamp_us, 1_000_000)
    moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=microsecond)

    assert event.body == event_of(event.record, CHANNEL, SOURCE, PRODUCER)
    assert event.body.endswith(f',"time":"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"}}'.encode())


@pytest.mark.usefixtures("compiled_codec")
@pytest.mark.parametrize("timestamp_us", [-1, LATEST_US, 1 << 54])
def test_a_time_that_is_rounded_is_left_to_the_reference(timestamp_us: int) -> None:
    assert native is not None
    heads = {Action.PUT: (b"", b"", b"")}
    assert native.cloud_events([at(timestamp_us)], 0, 1, heads, bytes, 1000) == ([], 0)
    assert native.cloud_events([at(LATEST_US - 1)], 0, 1, heads, bytes, 1000)[1] == 1
    check(at(timestamp_us))


@given(st.lists(rows, max_size=8), st.integers(1, 2_000))
def test_records_in_one_call_have_the_bytes_of_each(some: list[DecodedRow], size: int) -> None:
    records = [Record(Action.PUT, encode(row)) for row in some]
    records = [record for record in records if expected_event(record) is not None]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cloud_events, "PORTION_BYTES", size)
        patch.setattr(message, "PORTION_BYTES", size)
        events = []
        while len(events) < len(records):
            events += EVENTS.of(records, len(events))
        made = [each for part in MESSAGES.of(records) for each in part]

    assert [event.body for event in events] == [expected_event(record) for record in records]
    assert [event.record for event in events] == records
    assert made == [expected_message(record) for record in records]


def test_a_slice_is_bounded() -> None:
    records = [at(number, number) for number in range(2 * SLICE_RECORDS)]

    assert 0 < len(EVENTS.of(records, 3)) <= SLICE_RECORDS
    assert EVENTS.of(records, 3)[0].record is records[3]


def test_a_rare_record_among_others_has_its_place() -> None:
    rare = Record(Action.DELETE, encode_row((("a", Marker.INF_MIN),), delete=True))
    records = [at(1, 1), rare, at(2, 2), Record(Action.PUT, encode_row((("id", 9),), [Column("v", 1)]))]
    events = []
    while len(events) < len(records):
        events += EVENTS.of(records, len(events))

    assert [event.body for event in events] == [expected_event(record) for record in records]
    assert [made for part in MESSAGES.of(records) for made in part] == list(map(expected_message, records))


def test_a_malformed_record_ends_the_messages_behind_those_before_it() -> None:
    made = MESSAGES.of([at(1), Record(Action.PUT, b"u\0\0\0"), at(2)])

    assert next(made) == [expected_message(at(1))]
    with pytest.raises(CodecError):
        next(made)


def test_existing_rows_have_the_same_identity_in_every_replay() -> None:
    row = Record(Action.PUT, encode_row((("id", 9),), [Column("v", 1)]))

    (event,) = EVENTS.of([row], 0)
    assert b'"id":"t\\"1\\":channel \\"1\\"\\n:' in event.body
    assert b'"time"' not in event.body
    assert event.body == expected_event(row)


def test_an_existing_row_that_was_changed_before_it_was_read_again_is_another_event() -> None:
    """By the same tunnel from its last checkpoint, or by another one whose channels have the same names."""
    rows = [Record(Action.PUT, encode_row((("id", 9),), [Column("v", value)])) for value in (1, 2, 1)]

    ids = [json.loads(event.body)["id"] for row in rows for event in EVENTS.of([row], 0)]

    assert ids[0] == ids[2] != ids[1]


def test_equal_ids_are_of_equal_events() -> None:
    """Two tunnels of a table, whose channels have the same names, and two settings of columns."""
    change, row = at(1), Record(Action.PUT, encode_row((("id", 9),)))
    narrow, wide = ColumnsConfig(include=("a",)), ColumnsConfig(include=("a", "b"))
    producers = [producer_of("t-1", None), producer_of("t-2", None), *(producer_of("t-1", it) for it in (narrow, wide))]

    made = [Events(CHANNEL, SOURCE, producer).of([record], 0) for producer in producers for record in (change, row)]

    assert len({json.loads(event.body)["id"] for (event,) in made}) == len(made)
    assert producer_of("t-1", ColumnsConfig()) == "t-1"
    assert producer_of("t-1", ColumnsConfig(rename={"a": "a"})) == "t-1"
    assert producer_of("t-1", narrow) == producer_of("t-1", ColumnsConfig(include=("a", "a")))
