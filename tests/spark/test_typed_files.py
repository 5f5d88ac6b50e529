"""Spark reads typed files: another reader of Parquet than the library that writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ots_tunnel.model import Action, CellOp, ChannelId, SequenceInfo
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.files.parquet import Parquet
from ots_tunnel.sinks.files.rows.declared import Declared
from ots_tunnel.sinks.files.rows.row_form import TypedForm

KEY = (("name", "\u00fc"), ("id", -5), ("raw", b"\x00\xff"))
TYPES = {"i": "integer", "d": "double", "b": "boolean", "s": "string", "y": "binary"}
pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.xdist_group("spark"), pytest.mark.lasts(3)]

PUT = [Column("i", 2**62, 1), Column("d", 5, 1), Column("b", False, 1), Column("s", "\u00e9", 1), Column("y", b"\0", 1)]
CHANGES = [
    *(Column("other", 0.5, 7), Column("i", 1, 9), Column("i", 0, 8)),
    *(Column("s", None, None, CellOp.DELETE_ALL_VERSIONS), Column("t", None, 3, CellOp.DELETE_ONE_VERSION)),
]


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_spark_reads_every_column(spark: Any, tmp_path: Path, compression: str) -> None:
    records = [
        Record(Action.PUT, encode_row(KEY, PUT)),
        Record(Action.UPDATE, encode_row(KEY, CHANGES, sequence=SequenceInfo(1, 2, 3))),
        Record(Action.DELETE, encode_row(KEY, (), delete=True, sequence=SequenceInfo(1, 2, 4))),
    ]
    path = tmp_path / "changes.parquet"
    writer = Parquet(compression, TypedForm(Declared(TYPES))).create(path)
    writer.write(records, ChannelId("c"))
    writer.close()

    frame = spark.read.parquet(str(path))
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    put, update, delete = (row.asDict(recursive=True) for row in frame.collect())

    assert [kinds[name] for name in TYPES] == ["bigint", "double", "boolean", "string", "binary"]
    assert [put[name] for name in TYPES] == [2**62, 5.0, False, "\u00e9", b"\0"]
    assert put["key"] == dict(KEY)
    assert [update[name] for name in TYPES] == [1, None, None, None, None]
    assert update["sequence"] == {"epoch": 1, "timestamp_us": 2, "row_index": 3}
    assert update["deleted"] == ["s"]
    assert {name: value["double"] for name, value in update["others"].items()} == {"other": 0.5}
    assert (update["version"], update["versions"]) == (7, {"i": 9})
    assert [(cell["name"], cell["operation"], cell["version"]) for cell in update["cells"]] == [
        ("i", "PUT", 8),
        ("t", "DELETE_ONE_VERSION", 3),
    ]
    assert [delete[name] for name in ("action", *TYPES)] == ["DELETE", None, None, None, None, None]
