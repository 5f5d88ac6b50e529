"""Records as lines of text."""

from __future__ import annotations

import io
import json

import pytest

from ots_tunnel.commands.record_lines import text_line
from ots_tunnel.commands.record_printer import RecordPrinter
from ots_tunnel.model import Action, CellOp, ChannelId, ChannelType, SequenceInfo
from ots_tunnel.protocol.plainbuffer.column import Column
from tests.support.records import record


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (Column("x", 5, 7), "x=5"),
        (Column("x", None, 7, CellOp.DELETE_ONE_VERSION), "-x@7"),
        (Column("x", None, None, CellOp.DELETE_ALL_VERSIONS), "-x"),
    ],
)
def test_a_deleted_cell_has_a_minus_and_its_version(column: Column, shown: str) -> None:
    changed = record((("pk", "a"),), column, action=Action.UPDATE)

    assert text_line(changed).split("  ")[-1] == shown


def test_a_deleted_row_has_only_its_key() -> None:
    deleted = record((("pk", "a"),), action=Action.DELETE, sequence=SequenceInfo(0, 1_700_000_000_000_000, 1))

    assert text_line(deleted).split() == ["2023-11-14T22:13:20.000Z", "DELETE", "pk='a'"]


@pytest.mark.parametrize(
    ("charset", "expected"), [("latin-1", b"\\u00e9\\u0416\\ud83d\\ude00"), ("utf-8", "éЖ😀".encode())]
)
def test_json_is_json_in_every_character_set(monkeypatch: pytest.MonkeyPatch, charset: str, expected: bytes) -> None:
    output = io.BytesIO()
    stream = io.TextIOWrapper(output, encoding=charset, errors="backslashreplace")
    monkeypatch.setattr("sys.stdout", stream)
    row = record((("pk", "a"),), Column("x", "éЖ😀"), sequence=SequenceInfo(0, 1, 1))

    RecordPrinter("jsonl", None).take(ChannelId("c"), ChannelType.STREAM, [row])

    assert expected in output.getvalue()
    assert json.loads(output.getvalue())["columns"][0]["value"] == "éЖ😀"
