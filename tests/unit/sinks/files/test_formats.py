"""Contents of the files, and their first keys."""

from __future__ import annotations

import gc
import io
import json
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action, CellOp, ChannelId, SequenceInfo
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.tags import EXTENSION
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.files.first_key import first_key
from ots_tunnel.sinks.files.format import FileFormat
from ots_tunnel.sinks.files.held_rows import MOST_BATCHES
from ots_tunnel.sinks.files.json_lines import JsonLines
from ots_tunnel.sinks.files.parquet import HELD_BYTES, Parquet, parquet_writer
from ots_tunnel.sinks.files.rows.coded_texts import CODED
from ots_tunnel.sinks.files.rows.declared import Declared
from ots_tunnel.sinks.files.rows.row_form import REPEATING, ChangeLogForm, TypedForm
from ots_tunnel.sinks.json_bytes import json_lines

KEY = (("name", "ü\n"), ("id", -5), ("raw", b"\x00\xff"))
CELLS = (
    Column("i", 2**62, 1),
    Column("d", -0.0, 2),
    Column("b", True, 3),
    Column("s", "text", 4),
    Column("y", b"\x01", 5),
    Column("s", None, 4, CellOp.DELETE_ONE_VERSION),
    Column("t", None, None, CellOp.DELETE_ALL_VERSIONS),
)
TYPES = {"i": "integer", "d": "double", "b": "boolean", "s": "string", "y": "binary"}
TYPED = TypedForm(Declared(TYPES))
UPDATE = Record(Action.UPDATE, encode_row(KEY, CELLS, sequence=SequenceInfo(1, 2, 3)))
BASE = Record(Action.PUT, encode_row(KEY, ()))


def written(form: FileFormat[Record], path: Path, *records: Record) -> bytes:
    writer = form.create(path)
    writer.write(records, ChannelId("c"))
    writer.close()
    return path.read_bytes()


def test_a_row_group_says_by_what_readers_can_skip_it(tmp_path: Path) -> None:
    written(Parquet(), tmp_path / "f", UPDATE, BASE)

    group = pq.ParquetFile(tmp_path / "f").metadata.row_group(0)
    columns = {found.path_in_schema: found for found in map(group.column, range(group.num_columns))}
    measured = {
        path: (found.statistics.min, found.statistics.max) for path, found in columns.items() if found.statistics
    }
    assert measured == {
        "action": ("PUT", "UPDATE"),
        "sequence.epoch": (1, 1),
        "sequence.timestamp_us": (2, 2),
        "sequence.row_index": (3, 3),
        "key.name": ("ü\n", "ü\n"),
        "key.id": (-5, -5),
        "key.raw": (b"\x00\xff", b"\x00\xff"),
    }


def test_only_values_that_repeat_have_a_dictionary(tmp_path: Path) -> None:
    written(Parquet(), tmp_path / "f", UPDATE, BASE)

    group = pq.ParquetFile(tmp_path / "f").metadata.row_group(0)
    columns = map(group.column, range(group.num_columns))
    assert {found.path_in_schema for found in columns if found.has_dictionary_page} == set(REPEATING)


def test_a_change_in_parquet(tmp_path: Path) -> None:
    written(Parquet("zstd"), tmp_path / "f", UPDATE, BASE)

    change, row = pq.read_table(tmp_path / "f").to_pylist()
    assert change["action"] == "UPDATE"
    assert change["sequence"] == {"epoch": 1, "timestamp_us": 2, "row_index": 3}
    assert change["key"] == dict(KEY)
    kinds = ["integer", "double", "boolean", "string", "binary", None, None]
    assert [cell["type"] for cell in change["cells"]] == kinds
    values = [cell["value"] and cell["value"][cell["type"]] for cell in change["cells"]]
    assert values == [cell.value for cell in CELLS]
    assert str(values[1]) == "-0.0"
    assert [cell["operation"] for cell in change["cells"]] == [cell.op.name for cell in CELLS]
    assert [cell["version"] for cell in change["cells"]] == [cell.timestamp_ms for cell in CELLS]
    assert (row["action"], row["sequence"], row["cells"]) == ("PUT", None, [])


@pytest.mark.parametrize("form", [None, TYPED], ids=["change log", "typed"])
def test_rows_are_read_as_texts_although_they_are_written_as_codes(tmp_path: Path, form: TypedForm | None) -> None:
    """Rows of the compiled twin, and one of the reference in between."""
    rare = Record(Action.PUT, BASE.body[:-2] + bytes((EXTENSION, 0, 0, 0, 0)) + BASE.body[-2:])
    rows, path = form or ChangeLogForm(), tmp_path / "f"
    schema = rows.schema(KEY)
    writer = Parquet(form=form).create(path)
    for page in ([UPDATE], [rare], [UPDATE, BASE]):
        writer.write(page, ChannelId("c"))
    writer.close()

    assert pq.read_schema(path).equals(schema)
    expected = pa.Table.from_batches(rows.batches([UPDATE, rare, UPDATE, BASE], ChannelId("c"), schema), schema)
    assert pq.read_table(path).equals(expected)


def test_pages_without_cells_do_not_change_how_the_others_are_encoded(tmp_path: Path) -> None:
    """Arrow's encoder gives codes up for the rest of a group where two batches name different texts for them."""
    records = [Record(Action.PUT, encode_row((("pk", n),), (Column("x", n, 1),))) for n in range(2000)]
    deletion = Record(Action.DELETE, encode_row((("pk", 1),), (), delete=True))
    pages = (records[:1000], records[1000:])
    sizes = []
    for name, each in (("a", pages), ("b", ([deletion], *pages))):
        writer = Parquet().create(tmp_path / name)
        for page in each:
            writer.write(page, ChannelId("c"))
        writer.close()
        group = pq.ParquetFile(tmp_path / name).metadata.row_group(0)
        columns = {found.path_in_schema: found for found in map(group.column, range(group.num_columns))}
        sizes.append([columns[f"cells.list.element.{one}"].total_uncompressed_size for one in ("operation", "type")])

    of_puts, with_deletion = sizes
    assert max(more - less for more, less in zip(with_deletion, of_puts, strict=True)) < 100


def test_the_encoder_gets_codes(tmp_path: Path) -> None:
    form = ChangeLogForm()
    schema = form.schema(KEY)
    writer = parquet_writer(tmp_path / "f", schema, form, "NONE")
    (batch,) = form.batches([UPDATE], ChannelId("c"), writer.schema)
    writer.close()

    cell = batch.schema.field("cells").type.value_type
    assert {batch.schema.field("action").type, cell.field("operation").type, cell.field("type").type} == {CODED}


def test_a_change_in_typed_parquet(tmp_path: Path) -> None:
    written(Parquet("zstd", TYPED), tmp_path / "f", UPDATE, BASE)

    change, row = pq.read_table(tmp_path / "f").to_pylist()
    assert (change["action"], change["key"]) == ("UPDATE", dict(KEY))
    assert change["sequence"] == {"epoch": 1, "timestamp_us": 2, "row_index": 3}
    # `s` is put and then loses a version, so all of it is left over
    assert [change[name] for name in TYPES] == [2**62, -0.0, True, None, b"\x01"]
    assert [(cell["name"], cell["operation"], cell["version"]) for cell in change["cells"]] == [
        ("s", "PUT", 4),
        ("s", "DELETE_ONE_VERSION", 4),
    ]
    assert (change["deleted"], change["others"]) == (["t"], [])
    assert (change["version"], change["versions"]) == (1, [("d", 2), ("b", 3), ("y", 5)])
    assert (row["action"], row["sequence"], row["version"]) == ("PUT", None, None)
    assert [row[name] for name in (*TYPES, "deleted", "others", "versions", "cells")] == [None] * 5 + [[]] * 4


def test_readers_skip_groups_by_the_bounds_of_typed_columns(tmp_path: Path) -> None:
    written(Parquet(form=TYPED), tmp_path / "f", UPDATE, BASE)

    group = pq.ParquetFile(tmp_path / "f").metadata.row_group(0)
    columns = {found.path_in_schema: found for found in map(group.column, range(group.num_columns))}
    assert (columns["i"].statistics.min, columns["i"].statistics.max) == (2**62, 2**62)
    assert columns["s"].has_dictionary_page
    assert not columns["cells.list.element.name"].statistics


def test_readers_that_skip_groups_find_rows_of_nan(tmp_path: Path) -> None:
    values = (1.5, math.nan)
    records = [Record(Action.PUT, encode_row((("pk", n),), (Column("d", value, 1),))) for n, value in enumerate(values)]
    written(Parquet(form=TYPED), tmp_path / "f", *records)

    double = pc.field("d")
    for question in (double.is_nan(), double != 1.5, ~(double <= 1.5)):
        found = ds.dataset(tmp_path / "f").to_table(filter=question)
        assert found.column("key").to_pylist() == [{"pk": 1}]


def test_rows_of_many_columns_are_held_in_bounds(tmp_path: Path) -> None:
    """A row of 60 bytes takes 1 KB with 128 columns of numbers."""
    form = Parquet(form=TypedForm(Declared({f"c{number}": "integer" for number in range(128)})))
    records = [Record(Action.PUT, encode_row((("pk", n),), (Column("c7", n, 1),))) for n in range(10_000)]
    writer = form.create(tmp_path / "f")
    writer.write(records, ChannelId("c"))
    assert form.held_bytes < HELD_BYTES
    writer.close()

    file = pq.ParquetFile(tmp_path / "f")
    assert file.num_row_groups >= 4
    assert file.read(["c7", "c8"]).to_pydict() == {"c7": [*range(10_000)], "c8": [None] * 10_000}


def test_the_schema_does_not_depend_on_the_records(tmp_path: Path) -> None:
    written(Parquet(), tmp_path / "a", UPDATE)
    written(Parquet(), tmp_path / "b", BASE)

    assert pq.read_schema(tmp_path / "a").equals(pq.read_schema(tmp_path / "b"))


def test_many_row_groups_keep_their_order(tmp_path: Path) -> None:
    records = [Record(Action.PUT, encode_row((("pk", n),), (Column("x", "v" * 3000, 1),))) for n in range(6000)]
    written(Parquet(), tmp_path / "f", *records)

    file = pq.ParquetFile(tmp_path / "f")
    assert file.num_row_groups > 1
    assert [key["pk"] for key in file.read(["key"]).column("key").to_pylist()] == list(range(6000))


def test_files_that_are_filled_side_by_side_hold_little_together(tmp_path: Path) -> None:
    form = Parquet()
    writers = [form.create(tmp_path / f"{number}") for number in range(30)]
    records = [Record(Action.PUT, encode_row((("pk", n),), (Column("x", "v" * 100_000, 1),))) for n in range(20)]
    for writer in writers:
        writer.write(records, ChannelId("c"))
        assert form.held_bytes < HELD_BYTES
    for writer in writers:
        writer.close()

    assert form.held_bytes == 0
    assert [pq.read_metadata(tmp_path / f"{number}").num_rows for number in range(30)] == [20] * 30


def test_many_small_pages_are_held_in_few_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of one row takes 16 KB, and a channel that has caught up gets a page for nearly every change."""
    write, chunks = pq.ParquetWriter.write_table, []

    def seen(self: pq.ParquetWriter, table: pa.Table, *args: object, **options: object) -> None:
        chunks.append(table.column("key").num_chunks)
        write(self, table, *args, **options)

    monkeypatch.setattr(pq.ParquetWriter, "write_table", seen)
    writer = Parquet().create(tmp_path / "f")
    for number in range(100):
        writer.write([Record(Action.PUT, encode_row((("pk", number),), CELLS))], ChannelId("c"))
    writer.close()

    assert len(chunks) == 1
    assert chunks[0] <= MOST_BATCHES
    rows = pq.read_table(tmp_path / "f").to_pylist()
    assert [row["key"]["pk"] for row in rows] == list(range(100))
    assert all(row["cells"] == rows[0]["cells"] for row in rows)


def test_bytes_of_an_abandoned_file_are_not_counted_any_more(tmp_path: Path) -> None:
    form = Parquet()
    form.create(tmp_path / "f").write([UPDATE], ChannelId("c"))
    gc.collect()

    assert form.held_bytes == 0


@pytest.mark.parametrize(
    "form",
    [
        *(JsonLines(json_lines), JsonLines(json_lines, "gzip"), JsonLines(json_lines, "zstd")),
        *(Parquet(), Parquet("gzip"), Parquet(form=TYPED)),
    ],
)
def test_the_first_key_is_read_back(form: FileFormat[Record], tmp_path: Path) -> None:
    written(form, tmp_path / "f", UPDATE)
    with (tmp_path / "f").open("rb") as file:
        assert first_key(f"0000000000.1.{form.suffix}", file) == KEY


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "jsonl.zst", "parquet"])
@pytest.mark.parametrize("bytes_", [b"", b"{}", b"[1]\n", b"\xff" * 100])
def test_a_file_of_another_format_is_refused(suffix: str, bytes_: bytes) -> None:
    with pytest.raises(CodecError, match=r"not a .*file of"):
        first_key(f"0000000000.1.{suffix}", io.BytesIO(bytes_))


def test_a_compressed_file_is_what_its_name_says(tmp_path: Path) -> None:
    form = JsonLines(json_lines, "gzip")
    content = written(form, tmp_path / "f", UPDATE)

    assert form.suffix == "jsonl.gz"
    line = pa.input_stream(io.BytesIO(content), compression="gzip").read()
    assert json.loads(line)["sequence"] == [1, 2, 3]


def test_numbers_that_json_does_not_know_are_objects(tmp_path: Path) -> None:
    cells = (Column("x", float("nan"), 1), Column("y", float("-inf"), 1))
    content = written(JsonLines(json_lines), tmp_path / "f", Record(Action.PUT, encode_row(KEY, cells)))

    assert [cell["value"] for cell in json.loads(content)["columns"]] == [{"double": "nan"}, {"double": "-inf"}]
