"""A table in aligned columns that fits the screen. Pure.

Where it is too wide, whole columns go, the least important one first; what is left of the room goes to the column that
may be cut, such as a reason in words. A name is cut only when nothing else is left, and then to a few characters: in a
screen that is narrower than that, lines break.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ots_tunnel_operator.plugin.text.screen import Screen

#: Spaces between two columns.
_GAP = 2
#: Narrowest width to which a column is cut before any column goes: about one word.
_WORD = 16
#: Narrowest width to which a column is cut when nothing else is left.
_LEAST = 8


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Args:
        drop: 0 is never left out; of the others the largest goes first.
        right: whether it is aligned to the right, as numbers are.
        cut: whether its cells may be shortened before any column goes.
    """

    title: str
    drop: int = 0
    right: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """Text in a style of `Screen.paint`."""

    text: str
    style: str = ""


def table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], screen: Screen) -> list[str]:
    """The lines, titles first; columns without any text are left out."""
    shown = [index for index in range(len(columns)) if columns[index].drop == 0 or _is_filled(rows, index)]
    widths = {index: _width(columns[index], rows, index) for index in shown}
    if screen.width is not None:
        shown, widths = _fitted(columns, shown, widths, screen.width)
    titles = [Cell(column.title, "dim") for column in columns]
    return [_line(columns, row, shown, widths, screen) for row in (titles, *rows)]


def _is_filled(rows: Sequence[Sequence[Cell]], index: int) -> bool:
    return any(row[index].text not in ("", "-") for row in rows)


def _width(column: Column, rows: Sequence[Sequence[Cell]], index: int) -> int:
    return max(len(column.title), *(len(row[index].text) for row in rows)) if rows else len(column.title)


def _total(widths: dict[int, int], shown: Sequence[int]) -> int:
    return sum(widths[index] for index in shown) + _GAP * (len(shown) - 1)


def _fitted(
    columns: Sequence[Column], shown: list[int], widths: dict[int, int], room: int
) -> tuple[list[int], dict[int, int]]:
    """The columns that are left, and their widths."""
    widths = dict(widths)
    least = {index: min(widths[index], _WORD) if columns[index].cut else widths[index] for index in shown}
    while _total(least, shown) > room and (droppable := [index for index in shown if columns[index].drop]):
        shown = [index for index in shown if index != max(droppable, key=lambda index: columns[index].drop)]
    for index in shown:
        # cells that may be cut first, then any other, the widest first
        if columns[index].cut:
            widths[index] = max(least[index], widths[index] - max(0, _total(widths, shown) - room))
    for index in sorted(shown, key=lambda index: -widths[index]):
        widths[index] = max(min(widths[index], _LEAST), widths[index] - max(0, _total(widths, shown) - room))
    return shown, widths


def _line(
    columns: Sequence[Column], row: Sequence[Cell], shown: Sequence[int], widths: dict[int, int], screen: Screen
) -> str:
    parts = []
    for place, index in enumerate(shown):
        text = screen.cut(row[index].text, widths[index])
        padding = " " * (widths[index] - len(text))
        painted = screen.paint(text, row[index].style)
        is_last = place == len(shown) - 1
        parts.append(padding + painted if columns[index].right else painted + ("" if is_last else padding))
    return (" " * _GAP).join(parts).rstrip()
