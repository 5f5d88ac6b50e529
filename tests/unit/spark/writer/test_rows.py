"""Rows of Arrow batches as records of a write."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ots_tunnel.model import Action
from ots_tunnel.protocol.plainbuffer.codec import decode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.spark.columns import COLUMN_TYPES, build_batch
from ots_tunnel.spark.writer.layout import Layout
from ots_tunnel.spark.writer.rows import records_of

LAYOUT = Layout(("b", "a"), ("x", "y"), "what", "at")
KINDS = {"a": "bigint", "b": "string", "x": "double", "y": "binary", "what": "string", "at": "bigint"}


def batch(*rows: dict[str, Any]) -> Any:
    return build_batch([(name, COLUMN_TYPES[kind], [row.get(name) for row in rows]) for name, kind in KINDS.items()])


def records(*rows: dict[str, Any], layout: Layout = LAYOUT) -> tuple[list[Record], list[tuple[str, str]]]:
    bad: list[tuple[str, str]] = []
    return list(records_of(batch(*rows), layout, lambda code, text, _: bad.append((code, text)))), bad


def row(number: int, what: str | None = "put", **cells: Any) -> dict[str, Any]:
    return {"a": number, "b": "k", "what": what, **cells}


def test_each_row_is_the_change_that_its_action_says() -> None:
    found, bad = records(row(1, "put", x=1.5, y=b"\0", at=7), row(2, "Update", x=2.0), row(3, "DELETE", x=9.0, at=7))

    assert [record.action for record in found] == [Action.PUT, Action.UPDATE, Action.DELETE]
    decoded = [decode_row(record.write_body) for record in found]
    assert [each.primary_key for each in decoded] == [(("b", "k"), ("a", number)) for number in (1, 2, 3)]
    assert decoded[0].columns == (Column("x", 1.5, 7), Column("y", b"\0", 7))
    assert decoded[1].columns == (Column("x", 2.0),)
    assert (decoded[2].columns, decoded[2].delete_marker) == ((), True)
    assert bad == []


def test_without_a_column_of_actions_each_row_is_a_put() -> None:
    found, _ = records(row(1, None, x=1.0), row(2, None), layout=Layout(("b", "a"), ("x",)))

    assert [record.action for record in found] == [Action.PUT, Action.PUT]
    assert decode_row(found[1].write_body).columns == ()


@pytest.mark.parametrize(
    ("wrong", "code", "text"),
    [
        ({"a": None}, "NullKey", "column 'a': found NULL in the row b='k', .* it is a column of the key"),
        ({"a": None, "b": None}, "NullKey", "column 'b': found NULL, allowed are values"),
        ({"what": None}, "WrongAction", "action NULL of the row b='k', a=2: allowed are put, update and delete"),
        ({"what": "insert"}, "WrongAction", "action 'insert' of the row b='k', a=2"),
        ({"at": -1}, "WrongVersion", "version -1 of the row b='k', a=2: allowed are milliseconds since 1970"),
        ({"at": 2**63 - 1}, "WrongVersion", "version 9223372036854775807 of the row"),
    ],
)
def test_a_row_that_is_no_change_is_named_and_the_others_stay(wrong: dict[str, Any], code: str, text: str) -> None:
    found, bad = records(row(1), {**row(2), **wrong}, row(3))

    assert [decode_row(record.write_body).primary_key[1] for record in found] == [("a", 1), ("a", 3)]
    [(found_code, found_text)] = bad
    assert found_code == code
    assert re.search(text, found_text)
