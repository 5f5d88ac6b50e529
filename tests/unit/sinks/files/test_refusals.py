"""Records that typed files refuse."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ots_tunnel.errors import CodecError, SinkRejected
from ots_tunnel.model import Action, CellOp, ChannelType, Token, TunnelId
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch
from ots_tunnel.sinks.files import FilesSink
from ots_tunnel.sinks.files.folder import FolderStore
from ots_tunnel.sinks.files.json_lines import JsonLines
from ots_tunnel.sinks.files.parquet import Parquet
from ots_tunnel.sinks.files.rows.declared import Declared
from ots_tunnel.sinks.files.rows.refusals import refusals
from ots_tunnel.sinks.files.rows.row_form import TypedForm
from ots_tunnel.sinks.files.settings import FileSettings
from ots_tunnel.sinks.middleware.dead_letters import DeadLetters, letter_lines
from ots_tunnel.sinks.middleware.permanent_errors import LetteringSink
from tests.support.guards import OpenGuard
from tests.unit.sinks.files.conftest import CHANNEL, existing

DECLARED = Declared({"i": "integer", "d": "double", "b": "boolean", "s": "string", "y": "binary", "x": "string"})
STRICT = replace(DECLARED, keeps_unknown=False)
FITTING = {"i": -5, "d": 0.5, "b": True, "s": "text", "y": b"\0", "x": ""}
BACKOFF = Backoff(0.01, 2, 0.05, 0)


def update(*cells: Column, key: int = 1) -> Record:
    return Record(Action.UPDATE, encode_row((("pk", key),), cells))


def messages(declared: Declared, *cells: Column) -> list[tuple[str, str]]:
    return [(refusal.code, refusal.message) for refusal in refusals([update(*cells)], declared)]


def test_values_of_their_types_fit() -> None:
    cells = [Column(name, value, 1) for name, value in FITTING.items()]

    assert messages(STRICT, *cells) == []


@pytest.mark.parametrize("found", [5, 0.5, True, "text", b"raw"], ids=repr)
@pytest.mark.parametrize("name", "idbsy")
def test_every_other_type_is_refused(name: str, found: int | float | bool | str | bytes) -> None:
    if type(found) is type(FITTING[name]) or (name, found) == ("d", 5):
        assert messages(DECLARED, Column(name, found, 1)) == []
        return
    words = {int: "integer", float: "double", bool: "boolean", str: "string", bytes: "binary"}
    text = f"row pk=1: column {name!r}: found {words[type(found)]}, allowed is {DECLARED.types[name]}"

    assert messages(DECLARED, Column(name, found, 1)) == [("WrongType", text)]


@pytest.mark.parametrize(("number", "fits"), [(2**53, True), (2**53 + 1, False), (-(2**63), True), (2**63 - 1, False)])
def test_an_integer_is_a_double_only_where_both_are_equal(number: int, fits: bool) -> None:
    text = "row pk=1: column 'd': found an integer that no double is equal to, allowed is double"

    assert messages(DECLARED, Column("d", number, 1)) == ([] if fits else [("WrongType", text)])


def test_a_record_is_refused_once_however_many_values_do_not_fit() -> None:
    assert len(messages(DECLARED, Column("i", "a", 1), Column("b", "b", 1))) == 1


def test_only_what_a_column_would_tell_has_to_fit() -> None:
    """Older versions and increments keep their own types in the column `cells`."""
    older = [Column("i", 1, 9), Column("i", "text", 8), Column("s", 1, None, CellOp.INCREMENT)]

    assert messages(DECLARED, *older) == []


@pytest.mark.parametrize("op", [CellOp.PUT, CellOp.DELETE_ALL_VERSIONS, CellOp.INCREMENT])
def test_an_attribute_without_a_column_is_refused_where_the_document_says_so(op: CellOp) -> None:
    cell = Column("other", None if op is CellOp.DELETE_ALL_VERSIONS else 1, None, op)
    text = "row pk=1: column 'other': found, allowed are those of sink.files.columns, as unknownColumns says"

    assert messages(STRICT, cell) == [("UnknownColumn", text)]
    assert messages(DECLARED, cell) == []


def test_a_damaged_record_is_no_refusal() -> None:
    body = bytearray(update(Column("i", "text", 1)).body)
    body[-1] ^= 1

    with pytest.raises(CodecError):
        refusals([Record(Action.UPDATE, bytes(body))], DECLARED)


# The sink.


def good(number: int) -> Record:
    return Record(Action.PUT, encode_row((("pk", number),), (Column("x", "v", 5),)))


def bad(number: int) -> Record:
    return Record(Action.PUT, encode_row((("pk", number),), (Column("x", number, 5), Column("s", number, 5))))


def page(number: int, *records: Record) -> Batch:
    tokens = Token(f"page {number}"), Token(f"page {number + 1}")
    return Batch(CHANNEL, ChannelType.BASE, records, *tokens, page=number)


def files_sink(folder: Path) -> FilesSink:
    form = Parquet(form=TypedForm(DECLARED))
    return FilesSink(TunnelId("t"), FileSettings(FolderStore(folder), form, 1 << 20, 60, BACKOFF), DECLARED)


def published(folder: Path) -> list[int]:
    import pyarrow.parquet as pq

    paths = sorted(path for path in folder.rglob("*.parquet") if not path.name.startswith("."))
    return [row["key"]["pk"] for path in paths for row in pq.ParquetFile(path).read().to_pylist()]


async def test_a_refusal_is_raised_before_anything_of_its_page_is_in_a_file(tmp_path: Path) -> None:
    sink = files_sink(tmp_path)
    await sink.open()
    await sink.begin(CHANNEL, ChannelType.BASE, Token(""))
    first = await sink.take(page(1, good(1)), OpenGuard())
    with pytest.raises(SinkRejected) as refusal:
        await sink.take(page(2, good(2), bad(3), bad(4)), OpenGuard())
    await sink.end(CHANNEL, abandoned=False)

    assert (refusal.value.code, refusal.value.keys) == ("WrongType", ("pk=3", "pk=4"))
    assert str(refusal.value) == "WrongType: row pk=3: column 'x': found integer, allowed is string"
    assert first.done()
    assert published(tmp_path) == [1]


async def test_a_handler_gets_every_refused_record_once_and_the_others_are_published(tmp_path: Path) -> None:
    refused: list[tuple[Record, str]] = []
    sink, batch = files_sink(tmp_path), page(1, good(1), bad(2), good(3), bad(4))
    await sink.open()
    await sink.begin(CHANNEL, ChannelType.BASE, Token(""))
    handled = replace(batch, on_refused=lambda record, code, text: refused.append((record, code)))
    confirmation = await sink.take(handled, OpenGuard())
    assert refused == [(batch.records[1], "WrongType"), (batch.records[3], "WrongType")]
    await sink.end(CHANNEL, abandoned=False)
    await confirmation

    assert published(tmp_path) == [1, 3]


async def test_refused_records_become_dead_letters_once(tmp_path: Path) -> None:
    letters = FileSettings(FolderStore(tmp_path / "dead"), JsonLines(letter_lines), 1 << 20, 60, BACKOFF)
    sink = LetteringSink(files_sink(tmp_path / "out"), DeadLetters(TunnelId("t"), letters))
    await sink.open()
    await sink.begin(CHANNEL, ChannelType.BASE, Token(""))
    confirmations = [
        await sink.take(page(1, good(1), bad(2)), OpenGuard()),
        await sink.take(page(2, bad(3)), OpenGuard()),
        await sink.take(page(3, existing(4)), OpenGuard()),
    ]
    for confirmation in confirmations:
        confirmation.add_done_callback(lambda _: sink.checkpointed(CHANNEL, 3))
    await sink.end(CHANNEL, abandoned=False)
    for confirmation in confirmations:
        await confirmation

    lines = [
        json.loads(line)
        for path in (tmp_path / "dead").rglob("*.jsonl")
        if not path.name.startswith(".")
        for line in path.read_text().splitlines()
    ]
    assert published(tmp_path / "out") == [1, 4]
    assert [line["key"]["pk"] for line in lines] == [2, 3]
    assert lines[0]["error"] == {
        "code": "WrongType",
        "message": "row pk=2: column 'x': found integer, allowed is string",
    }
