"""The program of docs/sinks.md that reads typed files reads what the sink of that page has written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ots_tunnel.model import Action, CellOp, ChannelType, SequenceInfo, Token
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch
from ots_tunnel.sinks.choice import open_sink
from ots_tunnel.sinks.middleware.base import deferred
from tests.docs.pages import page
from tests.support.guards import OpenGuard
from tests.support.sink_kit import CHANNEL, document_of

HEADING = "Typed files: a column for each attribute"


class Example:
    """The document of the page with a folder of the test."""

    def __init__(self, folder: Path) -> None:
        document = yaml.safe_load(page("docs/sinks.md").block(HEADING, "yaml"))
        self.delivery = document["delivery"]
        self.section = document["sink"]
        self.section["files"]["url"] = folder.as_uri()


def record(number: int, action: Action, order: str, *cells: Column) -> Record:
    sequence = SequenceInfo(0, 1_700_000_000_000_000 + number, 0)
    return Record(action, encode_row((("id", order),), cells, sequence=sequence, delete=action is Action.DELETE))


RECORDS = [
    record(0, Action.PUT, "a", Column("price", 5, 1), Column("customer", "x", 1)),
    record(1, Action.PUT, "b", Column("price", 120.5, 1), Column("customer", "y", 1)),
    record(2, Action.PUT, "c", Column("price", 7.0, 1)),
    record(3, Action.UPDATE, "b", Column("customer", "z", 2), Column("note", "n", 2)),
    record(4, Action.UPDATE, "a", Column("price", None, None, CellOp.DELETE_ALL_VERSIONS)),
    record(5, Action.DELETE, "c"),
    record(6, Action.UPDATE, "b", Column("price", "expensive", 3)),
]


async def test_the_example_tells_untouched_from_deleted(tmp_path: Path) -> None:
    example = Example(tmp_path / "orders")
    program: dict[str, Any] = {}
    exec(compile(page("docs/sinks.md").block(HEADING, "python"), "docs/sinks.md", "exec"), program)
    sink = deferred(open_sink(document_of(example, tmp_path, example.delivery)))
    await sink.open()
    await sink.begin(CHANNEL, ChannelType.STREAM, Token("start"))
    confirmation = await sink.take(
        Batch(CHANNEL, ChannelType.STREAM, RECORDS, Token("start"), Token("end")), OpenGuard()
    )
    await sink.end(CHANNEL, abandoned=False)
    await confirmation

    assert sink.tally().records_skipped == 1
    assert program["prices"](str(tmp_path / "orders")) == {"b": 120.5}
    (row,) = program["expensive"](str(tmp_path / "orders")).to_dict("records")
    assert row == {"key": {"id": "b"}, "price": 120.5, "customer": "y"}
