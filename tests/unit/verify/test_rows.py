"""Two rows of one key: differences, cells left out near their expiry, and the shown texts."""

from __future__ import annotations

import struct

import pytest

from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.spans import RowSpan, scan_row
from ots_tunnel.verify.rows import SAME, compare_rows, is_near_expiry, near_expiry_limit, show_cells, show_value


def span_of(*columns: Column, number: int = 1) -> RowSpan:
    return scan_row(encode_row((("pk", number),), columns))


def test_cells_that_differ_are_shown_with_both_values() -> None:
    one = span_of(Column("a", 1, 5), Column("b", "x", 5), Column("b", "y", 4), Column("c", 0.0, 5))
    two = span_of(Column("c", -0.0, 5), Column("b", "y", 4), Column("b", "z", 5), Column("a", 1, 6))
    differences = compare_rows(one, two)

    assert [str(cell) for cell in show_cells(one, two, differences)] == [
        "a @ 6: absent | INTEGER 1",
        "a @ 5: INTEGER 1 | absent",
        "b @ 5: STRING 'x' | STRING 'z'",
        "c @ 5: DOUBLE 0.0 | DOUBLE -0.0",
    ]
    assert compare_rows(one, one) == SAME


def test_only_the_first_cells_of_a_row_are_shown() -> None:
    one = span_of(*(Column(f"c{number}", number, 1) for number in range(9)))
    differences = compare_rows(one, span_of())

    assert len(differences.versions) == 9
    assert [cell.column for cell in show_cells(one, span_of(), differences)] == ["c0", "c1", "c2", "c3", "c4"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "BOOLEAN true"),
        (1, "INTEGER 1"),
        (1.0, "DOUBLE 1.0"),
        (0.1, "DOUBLE 0.1"),
        (float("inf"), "DOUBLE inf"),
        (struct.unpack(">d", bytes.fromhex("7ff8000000000001"))[0], "DOUBLE nan (bits 7ff8000000000001)"),
        ("a'b\n", 'STRING "a\'b\\n"'),
        (b"\x00\xff", "BINARY 00ff"),
        ("", "STRING ''"),
    ],
)
def test_values_are_shown_with_their_types(value: int | float | str | bytes, shown: str) -> None:
    assert str(show_value(value)) == shown


def test_long_values_are_cut_and_say_their_size() -> None:
    text, binary = show_value("x" * 2_000_000), show_value(b"\x01" * 5_000)

    assert text.text.endswith("... (2,000,000 bytes)")
    assert len(text.text) < 100
    assert binary.text.endswith("... (5,000 bytes)")
    assert len(binary.text) < 100


def test_long_values_are_shown_where_they_differ() -> None:
    common = "x" * 1000
    one, two = span_of(Column("c", common + "one", 1)), span_of(Column("c", common + "two", 1))
    (cell,) = show_cells(one, two, compare_rows(one, two))

    assert cell.first is not None
    assert cell.second is not None
    assert "one" in cell.first.text
    assert "two" in cell.second.text
    assert cell.first.text.startswith("from character 990: ")


def test_cells_near_their_expiry_are_left_out() -> None:
    one = span_of(Column("a", 1, 100), Column("a", 2, 200))
    two = span_of(Column("a", 3, 300))

    assert compare_rows(one, two, 99).near_expiry == 0
    assert compare_rows(one, two, 100).near_expiry == 1
    differences = compare_rows(one, two, 200)
    assert (differences.versions, differences.near_expiry) == (((b"a", 300),), 2)
    assert is_near_expiry(one, 200)
    assert not is_near_expiry(one, 199)
    assert not is_near_expiry(one, None)
    assert not is_near_expiry(span_of(), 200)


def test_the_shorter_time_to_live_decides() -> None:
    assert near_expiry_limit((-1, -1), 1_000_000) is None
    assert near_expiry_limit((-1, 86_400), 1_000_000, margin=300) == (1_000_300 - 86_400) * 1000
    assert near_expiry_limit((100_000, 86_400), 1_000_000, margin=0) == (1_000_000 - 86_400) * 1000
