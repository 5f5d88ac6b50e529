"""Equal rows at the front of two pages: what the compiled codec skips is what the reference finds equal."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ots_tunnel.errors import CodecError
from ots_tunnel.protocol.matching import NOTHING, match_rows
from ots_tunnel.protocol.plainbuffer import compiled
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.spans import scan_row_in_python
from tests.support.row_strategies import damaged, encode, rows

native = compiled.native

wires = rows.map(encode).map(lambda wire: wire[4:]) | damaged().map(lambda wire: wire[4:])


def one_by_one(first: bytes, at: int, second: bytes, other: int) -> list[tuple[int, int, int, int]]:
    """The reference, row by row: (bytes, rows, cells, versions)."""
    size = cells = versions = 0
    steps = [(0, 0, 0, 0)]
    while at + size < len(first):
        try:
            row = scan_row_in_python(first, at + size)
        except CodecError:
            break
        raw = first[at + size : row.end]
        if second[other + size : other + size + len(raw)] != raw:
            break
        size = row.end - at
        cells += len({cell.name for cell in row.cells})
        versions += len(row.cells)
        steps.append((size, len(steps), cells, versions))
    return steps


@given(st.lists(wires, max_size=4), st.lists(wires, max_size=2), st.lists(wires, max_size=2), st.integers(0, 6))
def test_only_equal_rows_are_skipped(same: list[bytes], one: list[bytes], two: list[bytes], before: int) -> None:
    first, second = b"".join([*same, *one]), b"-" * before + b"".join([*same, *two])

    assert tuple(match_rows(first, 0, second, before)) in one_by_one(first, 0, second, before)


@pytest.mark.usefixtures("compiled_codec")
@given(
    st.lists(
        st.lists(st.builds(Column, st.sampled_from("abc"), st.integers(0, 9), st.integers(1, 9)), max_size=5),
        max_size=4,
    ),
    st.binary(max_size=5),
)
@example([[Column("ab", 1, 1), Column("b", 1, 1), Column("b", 2, 1)]], b"")
def test_tidy_rows_are_skipped_to_the_end(table: list[list[Column]], rest: bytes) -> None:
    page = b"".join(
        encode_row((("pk", number),), sorted(columns, key=lambda column: column.name), header=False)
        for number, columns in enumerate(table)
    )

    assert tuple(match_rows(page, 0, page + rest, 0)) == one_by_one(page, 0, page, 0)[-1]


def test_offsets_outside_a_page_match_nothing() -> None:
    page = encode_row((("pk", 1),), header=False)

    for at, other in ((-1, 0), (0, -1), (len(page), 0), (0, len(page)), (len(page) + 9, 0), (0, len(page) + 9)):
        assert match_rows(page, at, page, other) == NOTHING
