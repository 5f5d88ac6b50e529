"""How wide the output may be, and whether it has colours and blocks; and what follows from that for text. Pure, but for
`Screen.of`."""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TextIO

#: Name of a style -> parameter of the terminal's escape sequence.
_STYLES = {"good": "32", "warn": "33", "bad": "31", "dim": "2", "bold": "1"}
#: Width of sentences where the output is no terminal, and at most.
SENTENCE = 100
#: Narrowest width for which anything is made to fit.
NARROWEST = 30
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Screen:
    """Where text appears.

    Args:
        width: columns; None is unlimited, as for a file or a pipe.
        height: lines; None is unlimited.
        colour: whether escape sequences are understood.
        blocks: whether block characters can be written; otherwise bars are of `#`.
    """

    width: int | None = None
    height: int | None = None
    colour: bool = False
    blocks: bool = True

    @classmethod
    def of(cls, stream: TextIO) -> Self:
        """The screen behind a stream; COLUMNS and NO_COLOR (no-color.org) are followed."""
        blocks = (stream.encoding or "").lower().replace("-", "") == "utf8"
        if not stream.isatty():
            columns = os.environ.get("COLUMNS", "")
            return cls(max(NARROWEST, int(columns)) if columns.isdecimal() else None, blocks=blocks)
        size = shutil.get_terminal_size()
        colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        return cls(max(NARROWEST, size.columns), size.lines, colour, blocks)

    def paint(self, text: str, style: str) -> str:
        """The text in a style; as it is without colours or with an empty style."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.colour and style and text else text

    def cut(self, text: str, width: int) -> str:
        """The text, shortened to a width; control characters are blanks (`_plain`)."""
        text = _plain(text)
        if len(text) <= width:
            return text
        return text[: width - 1] + "…" if self.blocks else text[: width - 2] + ".."

    def bar(self, share: float, width: int) -> str:
        """A bar of a width for a share of 0 to 1; any share above 0 shows something."""
        share = min(1.0, max(0.0, share))
        if not self.blocks:
            return ("#" * (max(1, round(share * width)) if share else 0)).ljust(width, ".")
        eighths = max(1, round(share * width * 8)) if share else 0
        full, rest = divmod(eighths, 8)
        return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width, "·")

    def trend(self, values: Sequence[float | None]) -> str:
        """The course of some values, one character for each, by their share of the largest; a gap where one is
        unknown. Empty without blocks."""
        if not self.blocks:
            return ""
        most = max((value for value in values if value is not None), default=0.0) or 1.0
        return "".join(" " if value is None else _HEIGHTS[round(value / most * 7)] for value in values)

    def sentences(self, text: str, indent: str = "  ", first: str | None = None) -> list[str]:
        """Text broken into lines; `first` begins the first one instead of the indent. Control characters are blanks."""
        width = min(SENTENCE, self.width or SENTENCE)
        return textwrap.wrap(
            _plain(text),
            width,
            initial_indent=indent if first is None else first,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )


def _plain(text: str) -> str:
    """Text without control characters: a message, which anybody may have written, must not move the cursor, paint or
    type."""
    return text if text.isprintable() else "".join(each if each.isprintable() else " " for each in text)
