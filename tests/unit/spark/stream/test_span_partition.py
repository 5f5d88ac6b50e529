"""What a task gets of a batch: every record, in a fraction of its bytes."""

from __future__ import annotations

import pickle

from hypothesis import given, settings
from hypothesis import strategies as st

from ots_tunnel.model import Action, ChannelId, SequenceInfo
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.spark.stream.span_partition import SpanPartition

CHANNEL = ChannelId("c1")


def change(number: int, note: str = "quick") -> Record:
    cells = (Column("status", "delivered", 1_700_000_000_000), Column("note", note, 1_700_000_000_000))
    return Record(Action.PUT, encode_row((("id", number),), cells, sequence=SequenceInfo(0, number, 0)))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=300), min_size=1, max_size=40))
def test_a_task_gets_the_records_that_were_packed(notes: list[str]) -> None:
    records = [change(number, note) for number, note in enumerate(notes)]

    got = pickle.loads(pickle.dumps(SpanPartition.of(CHANNEL, records)))

    assert got.channel_id == CHANNEL
    assert [(each.action, bytes(each.body)) for each in got.records()] == [
        (each.action, bytes(each.body)) for each in records
    ]


def test_what_spark_copies_is_a_fraction_of_the_records() -> None:
    records = [change(number) for number in range(1_000)]

    assert 3 * len(pickle.dumps(SpanPartition.of(CHANNEL, records))) < sum(len(each.body) for each in records)
