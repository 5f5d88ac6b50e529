"""Rows on Arrow: a key that goes on in the next batch, rows that are gone, rows of a snapshot."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ots_tunnel.model import Action, ChannelId, SequenceInfo
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.files.rows.arrow_rows import ArrowRows, schema_of
from ots_tunnel.spark.lake.row_frames import BATCH_BYTES, decoded, folded

KEY = (("carrier", "c1"), ("flight", 7))
OTHER = (("carrier", "c2"), ("flight", 7))


def changes(*found: tuple[Any, Action, tuple[Column, ...]]) -> pa.RecordBatch:
    rows = ArrowRows()
    for place, (key, action, cells) in enumerate(found):
        body = encode_row(key, cells, delete=action is Action.DELETE, sequence=SequenceInfo(0, 5, place))
        rows.add(Record(action, body), ChannelId("c"))
    return rows.batch(schema_of(KEY))


def test_changes_of_a_key_become_one_row_also_over_the_border_of_a_batch() -> None:
    first = changes((KEY, Action.PUT, (Column("a", 1, 5), Column("b", b"x", 5))))
    second = changes(
        (KEY, Action.UPDATE, (Column("a", 2.5, 6),)),
        (OTHER, Action.PUT, (Column("a", True, 6),)),
        (OTHER, Action.DELETE, ()),
    )

    found = pa.Table.from_batches(list(folded([first, second]))).to_pylist()

    assert [row["key"] for row in found] == [dict(KEY), dict(OTHER)]
    values = dict(found[0]["row"])
    assert values["a"]["double"] == 2.5
    assert values["a"]["integer"] is None
    assert values["b"]["binary"] == b"x"
    assert dict(found[0]["versions"]) == {"a": 6, "b": 5}
    assert found[1]["row"] is None
    assert found[1]["versions"] is None


def test_a_row_without_values_is_an_empty_map() -> None:
    (batch,) = folded([changes((KEY, Action.PUT, ()))])

    assert batch.to_pylist() == [{"key": dict(KEY), "row": [], "versions": []}]


def test_no_changes_are_no_rows() -> None:
    assert list(folded([])) == []
    assert list(folded([changes()])) == []


def test_rows_of_a_snapshot_have_their_newest_versions() -> None:
    image = encode_row(KEY, (Column("a", "new", 9), Column("a", "old", 8)))
    batch = pa.RecordBatch.from_pydict({"row": pa.array([image, b""], pa.binary())})

    (found,) = decoded([batch], (("carrier", "string"), ("flight", "bigint")))

    (row,) = found.to_pylist()
    assert row["key"] == dict(KEY)
    assert dict(row["row"])["a"]["string"] == "new"
    assert row["versions"] == [("a", 9)]


def test_large_rows_do_not_wait_for_each_other_in_one_batch() -> None:
    value = Column("a", bytes(BATCH_BYTES // 2), 5)
    images = [encode_row((("carrier", "c1"), ("flight", number)), (value,)) for number in range(5)]
    batch = pa.RecordBatch.from_pydict({"row": pa.array(images, pa.binary())})

    found = decoded([batch], (("carrier", "string"), ("flight", "bigint")))

    assert [one.num_rows for one in found] == [2, 2, 1]
