"""Rows of a stream: exactly Spark's schema, by the compiled twin and by the reference; and the records on their way."""

from __future__ import annotations

import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ots_tunnel.errors import ConfigError
from ots_tunnel.model import Action, CellOp, ChannelId, SequenceInfo
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.files.rows import change_columns, typed_columns
from ots_tunnel.spark.stream.rows import StreamRows

KEY = (("name", "string"), ("id", "bigint"), ("raw", "binary"))
COLUMNS = (("i", "bigint"), ("d", "double"), ("b", "boolean"), ("s", "string"), ("y", "binary"))
C = ChannelId("c")


def records() -> list[Record]:
    key = (("name", "\u00fc"), ("id", -5), ("raw", b"\x00\xff"))
    put = [Column("i", 7, 1), Column("d", 0.5, 1), Column("b", True, 1), Column("s", "x", 1), Column("other", "z", 2)]
    update = [Column("i", 1, 9), Column("s", None, None, CellOp.DELETE_ALL_VERSIONS)]
    return [
        Record(Action.PUT, encode_row(key, put)),
        Record(Action.UPDATE, encode_row(key, update, sequence=SequenceInfo(1, 2, 3))),
        Record(Action.DELETE, encode_row(key, (), delete=True, sequence=SequenceInfo(1, 2, 4))),
    ]


@pytest.mark.parametrize("columns", [None, COLUMNS])
@pytest.mark.parametrize("is_compiled", [True, False])
def test_batches_have_exactly_sparks_schema(
    columns: tuple[tuple[str, str], ...] | None, is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_compiled:
        for module in (change_columns, typed_columns):
            monkeypatch.setattr(module, "native", None)
    rows = StreamRows(KEY, columns)

    batches = list(rows.batches(records(), C))

    wanted = to_arrow_schema(rows.schema(), timezone="UTC")
    assert [batch.schema for batch in batches] == [wanted] * len(batches)
    found = [row for batch in batches for row in batch.to_pylist()]
    assert [row["action"] for row in found] == ["PUT", "UPDATE", "DELETE"]
    assert found[0]["key"] == {"name": "\u00fc", "id": -5, "raw": b"\x00\xff"}
    assert found[0]["sequence"] is None
    if columns is not None:
        assert [found[0][name] for name, _ in columns] == [7, 0.5, True, "x", None]
        assert found[1]["deleted"] == ["s"]
        assert [(name, value["string"]) for name, value in found[0]["others"]] == [("other", "z")]


@pytest.mark.parametrize("columns", [None, COLUMNS])
def test_the_form_is_found_again_in_its_schema(columns: tuple[tuple[str, str], ...] | None) -> None:
    rows = StreamRows(KEY, columns)

    assert StreamRows.of(rows.schema(), columns) == rows


def test_another_schema_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^the schema: found struct<>, allowed is that of load\(\)"):
        StreamRows.of(StructType([]), None)
    with pytest.raises(ConfigError, match=r"^the schema: found "):
        StreamRows.of(StreamRows(KEY, None).schema(), COLUMNS)


def test_a_value_of_another_type_is_refused_by_name() -> None:
    rows = StreamRows(KEY, (("s", "bigint"),))

    with pytest.raises(ConfigError, match=r"column 's': found string, allowed is integer; leave the column out"):
        rows.check(records())
    StreamRows(KEY, None).check(records())
