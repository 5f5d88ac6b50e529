"""Rows as an aligned table that fits the terminal. Pure.

What does not fit is shortened in this order: ids, to the fewest first characters that tell them apart; then the widest
of the other columns. Ids that fit are never shortened, because they are copied from here. Where even that does not fit,
each row becomes a paragraph, with a line for each of its values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

#: Between two columns.
GAP = "  "
#: Takes the place of what is left out.
ELLIPSIS = "…"
#: Fewest characters of an id, and of a column that is cut.
LEAST = 8


def table_lines(
    rows: Sequence[Mapping[str, Any]], *, ids: Set[str] = frozenset(), width: int | None = None
) -> list[str]:
    """A line of titles and one for each row, or a paragraph for each row; `-` stands for None.

    Args:
        rows: all with the same keys in the same order, at least one.
        ids: columns that hold ids.
        width: columns of the terminal; None is without limit.
    """
    columns = {title: [_cell(row[title]) for row in rows] for title in rows[0]}
    if width is not None:
        whole = dict(columns)
        _fit(columns, ids, width)
        if _excess(columns, width) > 0 and len(columns) > 1:
            return _paragraphs(whole, ids, width)
    widths = {title: max(len(title), *map(len, cells)) for title, cells in columns.items()}
    titles = {title: title.upper() for title in columns}
    lines = [titles, *({title: cells[number] for title, cells in columns.items()} for number in range(len(rows)))]
    return [GAP.join(line[title].ljust(widths[title]) for title in columns).rstrip() for line in lines]


def _cell(value: Any) -> str:
    return "-" if value is None else str(value)


def _fit(columns: dict[str, list[str]], ids: Set[str], width: int) -> None:
    for title in columns:
        if title in ids and _excess(columns, width) > 0:
            columns[title] = shortened(columns[title])
    while (excess := _excess(columns, width)) > 0:
        others = [title for title in columns if title not in ids]
        title = max(others, key=lambda each: _width(columns, each), default="")
        if not title or _width(columns, title) <= max(LEAST, len(title)):
            return
        room = max(LEAST, len(title), _width(columns, title) - excess)
        columns[title] = [_cut(cell, room) for cell in columns[title]]


def _paragraphs(columns: Mapping[str, list[str]], ids: Set[str], width: int) -> list[str]:
    """Each row as lines of a title and a value; values end with the line, ids are only cut where they stay apart."""
    margin = max(map(len, columns))
    room = max(LEAST, width - margin - len(GAP))
    shown = {
        title: shortened(cells)
        if title in ids and max(map(len, cells)) > room
        else [_cut(each, room) for each in cells]
        for title, cells in columns.items()
    }
    rows = range(len(next(iter(shown.values()))))
    paragraphs = [
        [f"{title.upper().ljust(margin)}{GAP}{cells[row]}".rstrip() for title, cells in shown.items()] for row in rows
    ]
    return [line for number, lines in enumerate(paragraphs) for line in (["", *lines] if number else lines)]


def _cut(cell: str, room: int) -> str:
    return cell if len(cell) <= room else cell[: room - 1] + ELLIPSIS


def _excess(columns: Mapping[str, list[str]], width: int) -> int:
    return sum(_width(columns, title) for title in columns) + len(GAP) * (len(columns) - 1) - width


def _width(columns: Mapping[str, list[str]], title: str) -> int:
    return max(len(title), *map(len, columns[title]))


def shortened(ids: Sequence[str]) -> list[str]:
    """Ids cut to the fewest first characters, at least `LEAST`, that tell them apart."""
    different = set(ids)
    longest = max(map(len, different), default=0)
    length = next(
        (size for size in range(LEAST, longest) if len({each[:size] for each in different}) == len(different)), 0
    )
    return [each[:length] + ELLIPSIS if 0 < length < len(each) - 1 else each for each in ids]
