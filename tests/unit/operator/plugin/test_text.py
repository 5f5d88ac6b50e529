from __future__ import annotations

import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel_operator.plugin.text.columns import Cell, Column, table
from ots_tunnel_operator.plugin.text.ids import shortest
from ots_tunnel_operator.plugin.text.screen import Screen
from ots_tunnel_operator.plugin.text.spans import clock, count, of, short, words

COLUMNS = (
    Column("NAME"),
    Column("LAG", right=True),
    Column("AGE", drop=2),
    Column("ROWS", drop=1),
    Column("WHY", cut=True),
)


@pytest.mark.parametrize(
    ("seconds", "brief", "long"),
    [
        (0, "0s", "0 s"),
        (59.9, "59s", "59 s"),
        (60, "1m", "1 min"),
        (200, "3m20s", "3 min 20 s"),
        (7265, "2h1m", "2 h 1 min"),
        (86400, "1d", "1 d"),
        (1_000_000, "11d13h", "11 d 13 h"),
        (-5, "0s", "0 s"),
    ],
)
def test_spans(seconds: float, brief: str, long: str) -> None:
    assert (short(seconds), words(seconds)) == (brief, long)


def test_unknown_is_never_zero() -> None:
    assert (short(None), count(None)) == ("-", "-")
    assert (of(1, "worker"), of(0, "worker"), clock(0)) == ("1 worker", "0 workers", "1970-01-01 00:00:00 UTC")


@given(
    st.lists(
        st.lists(st.text(st.characters(codec="ascii", exclude_categories=["C"]), max_size=40), min_size=5, max_size=5)
    ),
    st.integers(30, 200),
)
def test_a_table_keeps_to_its_width_and_to_its_rows(cells: list[list[str]], width: int) -> None:
    rows = [[Cell(text) for text in row] for row in cells]

    lines = table(COLUMNS, rows, Screen(width=width))

    assert len(lines) == len(rows) + 1
    assert max(map(len, lines)) <= width
    assert all(title in lines[0] for title in ("NAME", "LAG", "WHY"))


def test_the_least_important_column_goes_first() -> None:
    rows = [[Cell("x" * 12), Cell("12s"), Cell("19d"), Cell("5,300"), Cell("some words about it")]]

    titles = [table(COLUMNS, rows, Screen(width=width))[0].split() for width in (60, 42, 36)]

    assert titles == [["NAME", "LAG", "AGE", "ROWS", "WHY"], ["NAME", "LAG", "ROWS", "WHY"], ["NAME", "LAG", "WHY"]]


def test_colours_do_not_move_a_column() -> None:
    rows = [[Cell("a", "bad"), Cell("1s", "good"), Cell(""), Cell(""), Cell("why")]]

    plain, coloured = (table(COLUMNS, rows, Screen(colour=colour)) for colour in (False, True))

    assert "\x1b[31ma\x1b[0m" in coloured[1]
    for code in ("\x1b[31m", "\x1b[32m", "\x1b[2m", "\x1b[0m"):
        coloured = [line.replace(code, "") for line in coloured]
    assert coloured == plain


def test_a_bar_shows_any_share_above_zero_and_nothing_for_zero() -> None:
    screen, plain = Screen(), Screen(blocks=False)

    assert [screen.bar(share, 4) for share in (0, 0.0001, 0.5, 1, 7)] == ["····", "▏···", "██··", "████", "████"]
    assert [plain.bar(share, 4) for share in (0, 0.0001, 0.5, 1)] == ["....", "#...", "##..", "####"]


def test_a_trend_leaves_a_gap_for_what_is_unknown() -> None:
    assert Screen().trend([0, None, 10, 5]) == "▁ █▅"
    assert Screen().trend([]) == Screen().trend([None, None]).strip() == ""
    assert Screen().trend([0, 0]) == "▁▁"
    assert Screen(blocks=False).trend([1]) == ""


def test_a_stream_that_is_no_terminal_has_neither_colours_nor_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    ascii_only = io.TextIOWrapper(io.BytesIO(), encoding="ascii")

    assert Screen.of(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")) == Screen(None, None, colour=False, blocks=True)
    assert not Screen.of(ascii_only).blocks
    monkeypatch.setenv("COLUMNS", "72")
    assert Screen.of(ascii_only).width == 72


@pytest.mark.parametrize(
    ("variables", "colour"),
    [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_a_terminal_has_colours_unless_it_is_asked_not_to(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], colour: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {"COLUMNS": "50", "LINES": "20", **variables}.items():
        monkeypatch.setenv(name, value)
    outer, inner = os.openpty()
    try:
        with os.fdopen(inner, "w", encoding="utf-8") as terminal:
            assert Screen.of(terminal) == Screen(50, 20, colour, True)
    finally:
        os.close(outer)


def test_ids_are_as_long_as_it_takes_to_tell_them_apart() -> None:
    assert shortest([]) == 8
    assert shortest(["4873ae54-05d0", "5873ae54-05d0"]) == 8
    assert shortest(["BaseData_1x", "BaseData_2x"]) == 10
    assert shortest(["same-id-here", "same-id-here"]) == 8
    assert shortest(["abc", "abcd"]) == 4


def test_a_cell_cannot_type_into_the_terminal() -> None:
    screen = Screen(colour=True)

    assert screen.cut("\x1b[2Jgone\x07", 20) == " [2Jgone "
    assert screen.sentences("one\x1b]0;owned\x07 two") == ["  one ]0;owned  two"]
