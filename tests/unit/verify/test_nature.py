"""In what two rows differ: values, columns, or versions alone."""

from __future__ import annotations

import pytest

from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.spans import RowSpan, scan_row
from ots_tunnel.verify.comparison import Comparison
from ots_tunnel.verify.nature import Nature, nature_of
from ots_tunnel.verify.report import kinds_line
from ots_tunnel.verify.rows import compare_rows


def span_of(*columns: Column) -> RowSpan:
    return scan_row(encode_row((("pk", 1),), columns))


@pytest.mark.parametrize(
    ("first", "second", "nature"),
    [
        ((Column("a", 1, 5),), (Column("a", 2, 5),), Nature.VALUES),
        ((Column("a", 1, 5),), (Column("a", "1", 5),), Nature.VALUES),
        ((Column("a", 1, 5), Column("b", 1, 5)), (Column("a", 2, 5),), Nature.VALUES),
        ((Column("a", 1, 5), Column("b", 1, 5)), (Column("a", 1, 5),), Nature.COLUMNS),
        ((), (Column("a", 1, 5),), Nature.COLUMNS),
        ((Column("a", 1, 5), Column("b", 1, 5)), (Column("a", 1, 6),), Nature.COLUMNS),
        ((Column("a", 1, 5),), (Column("a", 1, 6),), Nature.VERSIONS),
        ((Column("a", 1, 5), Column("a", 0, 4)), (Column("a", 1, 5),), Nature.VERSIONS),
        ((Column("a", 1, 5), Column("a", 0, 4)), (Column("a", 0, 4), Column("a", 1, 6)), Nature.VERSIONS),
        ((Column("a", 1, 5), Column("a", 0, 4)), (Column("a", 0, 4),), Nature.VALUES),
    ],
)
def test_the_first_nature_that_holds_is_counted(
    first: tuple[Column, ...], second: tuple[Column, ...], nature: Nature
) -> None:
    one, other = span_of(*first), span_of(*second)

    assert nature_of(one, other, compare_rows(one, other)) is nature


def test_a_version_near_its_expiry_does_not_decide() -> None:
    one, other = span_of(Column("a", 1, 5), Column("b", 1, 9)), span_of(Column("a", 2, 5), Column("b", 1, 10))

    assert nature_of(one, other, compare_rows(one, other, limit_ms=5)) is Nature.VERSIONS


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (Comparison(missing=1200), "the destination lacks 1,200 rows"),
        (Comparison(extra=1), "the destination has 1 row that the source lacks"),
        (
            Comparison(missing=1, different=6, in_values=3, in_columns=2, in_versions=1),
            "the destination lacks 1 row, and differs in 6 rows (3 in values, 2 in columns, 1 in versions alone)",
        ),
    ],
)
def test_one_line_says_what_kind_of_difference_it_is(found: Comparison, line: str) -> None:
    assert kinds_line(found) == line
