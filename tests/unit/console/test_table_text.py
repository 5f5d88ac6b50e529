"""Tables that fit the terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.console.table_text import ELLIPSIS, shortened, table_lines

ROWS = [
    {"tunnel": "orders-copy", "id": "6e11d632-b28b-4a4a-800a-fec80a662cb6", "stage": "ProcessStream", "rows": None},
    {"tunnel": "late", "id": "6e11d632-ffff-4a4a-800a-fec80a662cb6", "stage": "InitBaseDataAndStreamShard", "rows": 5},
]


def test_what_fits_is_shown_in_full() -> None:
    lines = table_lines(ROWS, ids={"id"}, width=90)

    assert lines == [
        "TUNNEL       ID                                    STAGE                       ROWS",
        "orders-copy  6e11d632-b28b-4a4a-800a-fec80a662cb6  ProcessStream               -",
        "late         6e11d632-ffff-4a4a-800a-fec80a662cb6  InitBaseDataAndStreamShard  5",
    ]
    assert table_lines(ROWS, ids={"id"}) == lines


def test_ids_are_shortened_first_and_stay_different() -> None:
    assert table_lines(ROWS, ids={"id"}, width=60) == [
        "TUNNEL       ID           STAGE                       ROWS",
        "orders-copy  6e11d632-b…  ProcessStream               -",
        "late         6e11d632-f…  InitBaseDataAndStreamShard  5",
    ]


def test_then_the_widest_column_is_cut() -> None:
    assert table_lines(ROWS, ids={"id"}, width=50) == [
        "TUNNEL       ID           STAGE               ROWS",
        "orders-copy  6e11d632-b…  ProcessStream       -",
        "late         6e11d632-f…  InitBaseDataAndSt…  5",
    ]


def test_a_narrow_terminal_gets_a_paragraph_for_each_row() -> None:
    assert table_lines(ROWS, ids={"id"}, width=30) == [
        "TUNNEL  orders-copy",
        "ID      6e11d632-b…",
        "STAGE   ProcessStream",
        "ROWS    -",
        "",
        "TUNNEL  late",
        "ID      6e11d632-f…",
        "STAGE   InitBaseDataAndStream…",
        "ROWS    5",
    ]


@given(st.integers(1, 120), st.lists(st.text("ab-", min_size=1, max_size=60), min_size=1, max_size=5))
def test_a_table_never_loses_a_row_and_fits_where_it_can(width: int, ids: list[str]) -> None:
    lines = table_lines([{"id": each, "state": "OPEN" * 10} for each in ids], ids={"id"}, width=width)

    assert len(lines) in (len(ids) + 1, 3 * len(ids) - 1)
    narrowest = len("STATE") + len("  ") + max(8, *map(len, shortened(ids)))
    assert max(map(len, lines)) <= max(width, narrowest)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["0123456789abcdef"], ["01234567…"]),
        (["01234567x"], ["01234567x"]),
        (["short", "0123456789abcdef"], ["short", "01234567…"]),
        (["0123456789abcdef", "0123456789abcdef"], ["01234567…", "01234567…"]),
        (["0123456789a", "0123456789b"], ["0123456789a", "0123456789b"]),
        (["0123456789", "0123456789abcdef"], ["0123456789", "0123456789a…"]),
    ],
)
def test_ids_keep_what_tells_them_apart(ids: list[str], expected: list[str]) -> None:
    assert shortened(ids) == expected


@given(st.lists(st.text("ab", max_size=30), max_size=6))
def test_different_ids_stay_different(ids: list[str]) -> None:
    short = shortened(ids)

    assert len(set(short)) == len(set(ids))
    for given_id, shown in zip(ids, short, strict=True):
        assert given_id.startswith(shown.removesuffix(ELLIPSIS))
        assert len(shown) <= len(given_id)
